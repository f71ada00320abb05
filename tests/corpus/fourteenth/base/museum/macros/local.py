from sqlmesh import macro


@macro()
def local_day(evaluator, moment):
    """The day in Amsterdam of a moment in UTC."""
    return f"CAST(FROM_UTC_TIMESTAMP({moment}, 'Europe/Amsterdam') AS DATE)"
