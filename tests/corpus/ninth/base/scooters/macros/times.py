"""Times of a city."""

from sqlmesh import macro


@macro()
def local_time(evaluator, column, city):
    """The time on the clocks of a city."""
    zones = evaluator.var("city_zones")
    branches = " ".join(
        f"WHEN {city} = '{name}' THEN FROM_UTC_TIMESTAMP({column}, '{zone}')" for name, zone in sorted(zones.items())
    )
    return f"CASE {branches} ELSE {column} END"
