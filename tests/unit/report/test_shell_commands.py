"""Commands that people copy from a report."""

from __future__ import annotations

from ci_bot.bot.report.model import advice
from ci_bot.protocol.plan_identity import GivenFlags, PlanOption
from tests.factories import PLAN, laptop_context, make_context, make_report


def test_commands__take_the_search_path_along() -> None:
    python_path = ["lib", "shared code", "-x"]
    options = "--python-path lib --python-path 'shared code' --python-path ./-x"
    report = make_report()
    project = report.project.model_copy(update={"python_path": python_path})
    report = report.model_copy(update={"project": project})

    assert options in advice.describe_reproduction(report, make_context())
    assert advice.format_project_options(["."], python_path, None) == f"--project . {options}"


def test_reproduce__takes_the_inputs_along_and_not_what_the_project_says() -> None:
    options = [
        PlanOption(name="select-model", value="+shop.orders; rm -rf /", source="input"),
        PlanOption(name="forward-only", value="false", source="input"),
        PlanOption(name="skip-backfill", value="true", source="input"),
        PlanOption(name="start", value="2024-01-01", source="review"),
        PlanOption(name="min-intervals", value="3", source="project", key="cicd_bot.x"),
    ]
    report = make_report(options=options)
    given = (
        " --select-model '+shop.orders; rm -rf /' --no-forward-only --skip-backfill "
        "--start 2024-01-01"
    )
    assert advice.describe_reproduction(report, make_context()).endswith(given)


def test_apply_command__has_the_options_of_the_plan_and_the_cleanup_none() -> None:
    given = GivenFlags(
        forward_only=False,
        skip_backfill=True,
        min_intervals=0,
        select_models=["+shop.orders; rm -rf /", "-a"],
        allow_destructive=["shop.orders"],
    )
    context = laptop_context(plan_options=advice.format_plan_flags(given, "2024-01-01", None))
    assert context.apply_command(PLAN).endswith(
        " --plan-id 9f3c21aa01bc --no-forward-only --skip-backfill --min-intervals 0 "
        "--select-model '+shop.orders; rm -rf /' --select-model ./-a "
        "--allow-destructive shop.orders --start 2024-01-01"
    )
    assert "select-model" not in context.cleanup_command


def test_commands__of_a_laptop_are_shell_lines() -> None:
    context = laptop_context(environment="my env")
    assert context.apply_command(PLAN) == (
        "ci-bot apply --project analytics --gateway spark_prod --environment 'my env' "
        "--plan-id 9f3c21aa01bc"
    )
    assert context.cleanup_command == (
        "ci-bot cleanup --project analytics --gateway spark_prod --environment 'my env'"
    )
