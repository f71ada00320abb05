from sqlmesh import macro


@macro()
def net_of_tax(evaluator, column, rate=0.19):
    """A gross amount without its tax, rounded to cents."""
    return f"ROUND({column} / (1 + {rate}), 2)"
