from sqlmesh import macro


@macro()
def rate_or_zero(evaluator, rate):
    """The rate of a tier; 0 where none applies."""
    return f"COALESCE({rate}, 0)"
