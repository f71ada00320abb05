"""What to say of a state that another version of SQLMesh wrote, and who must do what."""

from __future__ import annotations

from ci_bot.contracts.versions.sqlmesh import IN_WORDS, is_supported, numbers
from ci_bot.errors import BadInput

_MIGRATE = "let whoever owns prod upgrade it, which ends with `sqlmesh migrate`"
_NEVER = "This action never migrates a state."


def other_version(written_by: str, schema: int, *, installed: str) -> BadInput:
    """The refusal of a review, an apply or a cleanup (exit 2).

    Args:
        written_by: The version of SQLMesh that the state names.
        schema: Of the state's tables, as the state names it.
        installed: The version that this run has.
    """
    older = numbers(written_by) < numbers(installed)
    if numbers(written_by) == numbers(installed):
        hint = f"Its tables are those of another version all the same: {_MIGRATE}."
    elif is_supported(written_by):
        hint = f"Pin `sqlmesh=={written_by}` in the input `requirements`"
        hint += f"; or {_MIGRATE}." if older else ", with which prod is built."
    elif older:
        hint = f"It is older than what this release works with ({IN_WORDS}): {_MIGRATE}."
    else:
        hint = f"It is newer than what this release works with ({IN_WORDS}): take a newer release."
    return BadInput(
        f"The state database was written by another version of SQLMesh: {written_by} "
        f"(schema {schema}), and this run has {installed}.",
        hint=f"{hint} {_NEVER}",
        reason_code="state_version",
    )
