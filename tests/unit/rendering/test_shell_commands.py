"""Commands that people copy from a report."""

from __future__ import annotations

from ci_bot.bot.comment.text import shell_commands
from ci_bot.contracts.documents.plan_options import PlanOption
from tests.factories import make_context, make_report


def test_reproduce_and_apply__take_the_search_path_along() -> None:
    report = make_report()
    project = report.project.model_copy(update={"python_path": ["lib", "shared code", "-x"]})
    report = report.model_copy(update={"project": project})
    options = "--python-path lib --python-path 'shared code' --python-path ./-x"
    assert options in shell_commands.reproduce(report, make_context())
    assert options in shell_commands.apply(report)


def test_reproduce_and_apply__take_the_inputs_along_and_not_what_the_project_says() -> None:
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
    assert shell_commands.reproduce(report, make_context()).endswith(given)
    assert shell_commands.apply(report).endswith(given)
