from sqlmesh import macro


@macro()
def kg(evaluator, grams):
    """Kilograms from grams."""
    return f"CAST({grams} AS DECIMAL(12, 3)) / 1000"


@macro()
def hours_between(evaluator, earlier, later):
    """Whole hours from one time to a later one."""
    return f"TIMESTAMPDIFF(HOUR, {earlier}, {later})"
