from sqlmesh import macro


@macro()
def grant_readers(evaluator):
    """Opens the marts to the readers' role after a run."""
    if evaluator.runtime_stage != "after_all":
        return []
    return [
        f"GRANT SELECT ON TABLE {view} TO ROLE haem_readers"
        for view in sorted(str(view) for view in evaluator.views)
        if ".mart" in str(view)
    ]


@macro()
def age_band(evaluator, year):
    """The band of ten years that a year of birth falls into."""
    return f"CAST(FLOOR((YEAR(@execution_ds) - {year}) / 10) * 10 AS INT)"
