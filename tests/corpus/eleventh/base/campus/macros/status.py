"""What the registry calls active."""

from sqlglot import exp
from sqlmesh import macro

ACTIVE = ("enrolled", "completed")


@macro()
def status_group(evaluator, status: exp.Expression) -> str:
    listed = ", ".join(f"'{name}'" for name in ACTIVE)
    return f"CASE WHEN {status} IN ({listed}) THEN 'active' WHEN {status} IS NULL THEN 'unknown' ELSE 'gone' END"
