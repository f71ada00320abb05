from sqlmesh import macro


@macro()
def hours_between(evaluator, begin, finish):
    """The hours from one moment to another."""
    return f"(UNIX_TIMESTAMP({finish}) - UNIX_TIMESTAMP({begin})) / 3600"
