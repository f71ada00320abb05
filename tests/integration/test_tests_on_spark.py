"""Unit tests whose connection is Spark: a review starts it for them, or says that it cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.errors import EXIT_BAD_INPUT
from ci_bot.host import make_process_machine
from ci_bot.protocol.review_report import Report
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.worker import Client

CONNECTION = """
    test_connection:
      type: spark
      config:
        spark.master: local[1]
        spark.ui.enabled: "false"
"""
FORMS = {
    "of the gateway": ("\ndefault_gateway:", f"{CONNECTION}\ndefault_gateway:"),
    "of the project": (
        "\nmodel_defaults:",
        "\ndefault_test_connection: {type: spark, config: {spark.master: 'local[1]'}}\n"
        "\nmodel_defaults:",
    ),
}


def review(root: Path, form: str, **variables: str) -> Report:
    shop: Shop = write_duck_shop(root)
    shop.edit("config.yaml", *FORMS[form])
    LocalGit(shop.project).commit({}, "Tests on Spark")
    here = make_process_machine()
    around = replace(here, environ={**here.environ, **variables})
    return Client(shop.project, around=around).review("pr_7")


@pytest.mark.parametrize("form", FORMS)
def test_tests_on_spark__that_cannot_start__end_the_review_and_fail_no_test(
    tmp_path: Path, form: str
) -> None:
    report = review(tmp_path, form, JAVA_HOME=str(tmp_path / "none"))

    failure = report.failure
    assert failure is not None
    assert failure.reason_code == "no_java"
    assert failure.exit_code == EXIT_BAD_INPUT
    assert "there is no bin/java in it" in failure.message
    assert [risk.rule for risk in report.risks if risk.rule.startswith("R02")] == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.night
def test_tests_on_spark__run_there_and_the_report_says_so(tmp_path: Path) -> None:
    report = review(tmp_path, "of the gateway")

    assert report.checks.tests.status == "passed", report.checks.tests.failures
    assert "Spark was started for this review." in report.notes
