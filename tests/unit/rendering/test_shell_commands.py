"""Commands that people copy from a report."""

from __future__ import annotations

from ci_bot.bot.comment.text import shell_commands
from tests.factories import make_context, make_report


def test_reproduce_and_apply__take_the_search_path_along() -> None:
    report = make_report()
    project = report.project.model_copy(update={"python_path": ["lib", "shared code", "-x"]})
    report = report.model_copy(update={"project": project})
    options = "--python-path lib --python-path 'shared code' --python-path ./-x"
    assert options in shell_commands.reproduce(report, make_context())
    assert options in shell_commands.apply(report)
