from sqlmesh import macro


@macro()
def to_eur(evaluator, amount, currency, rate):
    """An amount in euros; euros have no rate."""
    return f"CAST({amount} * CASE WHEN {currency} = 'EUR' THEN 1 ELSE {rate} END AS DECIMAL(12, 2))"


@macro()
def grant_marts(evaluator):
    """Lets the analysts read the marts after a run."""
    if evaluator.runtime_stage != "after_all":
        return []
    return [
        f"GRANT SELECT ON TABLE {view} TO ROLE ferry_analysts"
        for view in sorted(str(view) for view in evaluator.views)
        if ".mart" in str(view)
    ]
