"""Amounts of invoice lines."""
from sqlmesh import macro


@macro()
def net_of(evaluator, quantity, unit_price, discount_pct):
    """What is charged for a line before tax."""
    return f"{quantity.sql()} * {unit_price.sql()} * (1 - COALESCE({discount_pct.sql()}, 0))"
