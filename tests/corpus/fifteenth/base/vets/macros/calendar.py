from sqlmesh import macro


@macro()
def fiscal_year(evaluator, day, first_month=7):
    """The fiscal year of a day, named by the year in which it ends."""
    return f"YEAR(ADD_MONTHS({day}, 13 - {first_month}))"
