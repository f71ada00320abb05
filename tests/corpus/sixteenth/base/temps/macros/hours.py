from sqlmesh import macro


@macro()
def hours(evaluator, minutes):
    """Hours with two digits of some minutes."""
    return f"CAST(({minutes}) / 60 AS DECIMAL(10, 2))"
