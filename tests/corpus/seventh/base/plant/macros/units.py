from sqlmesh import macro

BLANK = ' '


@macro()
def share_of(evaluator, part, whole):
    return f"CASE WHEN {whole} > 0 THEN {part} / {whole} ELSE 0 END"


@macro()
def clean_text(evaluator, column):
    return f"TRIM(BOTH '{BLANK}' FROM {column})"


@macro()
def unused(evaluator, column):
    return f"LOWER({column})"
