"""Money in queries."""

from sqlglot import exp
from sqlmesh import macro


@macro()
def signed(evaluator, amount, kind, minus="refund"):
    """A refund counts against the merchant."""
    return f"CASE WHEN {kind} = '{minus}' THEN -{amount} ELSE {amount} END"


@macro()
def rounded(evaluator, amount: exp.Expression, digits: int = 2):
    """Half up, as the scheme settles."""
    return f"ROUND({amount}, {digits})"
