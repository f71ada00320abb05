"""Statements around a plan."""

from sqlmesh import macro


@macro()
def log_deploy(evaluator):
    """Writes down who deployed to production."""
    if evaluator.locals.get("this_env") != "prod":
        return None
    return "INSERT INTO ops.deploys SELECT 'prod', CURRENT_TIMESTAMP()"


@macro()
def share_with_finance(evaluator, environment):
    """Finance reads what production shows, and nothing else."""
    if environment.name != "prod":
        return None
    return [f"GRANT SELECT ON VIEW {view} TO finance" for view in evaluator.views if "royalties" in view]
