from sqlmesh import macro


@macro()
def kwh(evaluator, wh):
    """Kilowatt hours of watt hours."""
    return f"CAST({wh} / 1000 AS DECIMAL(10, 3))"


@macro()
def share(evaluator, part, whole):
    """A part of a whole between 0 and 1, NULL without a whole."""
    return f"{part} / NULLIF({whole}, 0)"
