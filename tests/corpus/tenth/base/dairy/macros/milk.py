"""What a litre of milk is worth."""

from sqlmesh import macro

from dairy.quality import CLASSES


@macro()
def milk_class(evaluator, cells):
    """The class of a sample by its cells per millilitre."""
    whens = " ".join(f"WHEN {cells} <= {limit} THEN '{name}'" for name, limit in CLASSES)
    return f"CASE {whens} ELSE 'X' END"


@macro()
def bonus(evaluator, fat):
    """What fat milk is paid more."""
    return f"IF({fat} > {evaluator.var('bonus_fat')}, {evaluator.var('bonus_factor')}, 1)"


@macro()
def in_countries(evaluator, column):
    """Rows of the countries that the cooperative is in."""
    names = ", ".join(f"'{name}'" for name in evaluator.var("countries"))
    return f"{column} IN ({names})"


@macro()
def grant_readers(evaluator, environment):
    """The farmers' portal reads what production shows."""
    if environment.name != "prod":
        return None
    return [f"GRANT SELECT ON VIEW {view} TO portal" for view in evaluator.views if "mart" in view]
