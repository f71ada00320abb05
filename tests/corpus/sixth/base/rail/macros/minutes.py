from sqlmesh import macro


@macro()
def late(evaluator, column, limit=60):
    return f"{column} > {limit}"
