"""The image for reviews, which has neither Java nor Spark: what it does, and how it says no."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.comment_command import HelpCommand
from ci_bot.errors import EXIT_BAD_INPUT, BadInput
from ci_bot.host import CONTAINER_FILE, ContainerUser, read_container_user
from ci_bot.protocol.base import Versions
from ci_bot.worker.project.checks import check_versions_for_project
from ci_bot.worker.runtime import java

ON_SPARK = {
    "An apply": activities.Apply(number=7, requested_by="octocat"),
    "An estimate": activities.Estimate(number=7, requested_by="octocat"),
    "A cleanup": activities.Cleanup(number=7, merged=True, closed=True),
    "A sweep": activities.Sweep(),
}
WITHOUT = [
    activities.Review(number=7),
    activities.Accept(number=7, comment_id=1),
    activities.Restate(number=7, comment_id=1),
    activities.CommentCommand(number=7, comment_id=1, author="octocat", command=HelpCommand()),
    activities.PostForkReport(
        run_id=1, head_sha="1", head_repository=None, head_branch=None, fork=True
    ),
    activities.Doctor(branch="main"),
    activities.Drift(),
    activities.NothingToDo("nothing"),
]


@pytest.mark.parametrize("name", ON_SPARK)
def test_what_needs_spark__is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(BadInput) as refused:
        activities.check_image_has_spark_for_activity(ON_SPARK[name], has_spark=False)
    assert refused.value.message == f"{name} needs Spark, and the image for reviews has none."
    assert "without `/review`" in (refused.value.hint or "")
    assert (refused.value.reason_code, refused.value.exit_code) == ("no_spark", EXIT_BAD_INPUT)
    activities.check_image_has_spark_for_activity(ON_SPARK[name], has_spark=True)


@pytest.mark.parametrize("activity", WITHOUT, ids=lambda each: type(each).__name__)
def test_what_needs_none__goes_on(activity: activities.Activity) -> None:
    activities.check_image_has_spark_for_activity(activity, has_spark=False)


def test_activities__are_all_on_one_of_the_two_lists() -> None:
    listed = {type(each) for each in [*ON_SPARK.values(), *WITHOUT]}
    assert listed == set(activities.Activity.__args__)


@pytest.mark.parametrize("home", ["/opt/java", None])
def test_container_file__says_whether_there_is_a_java(tmp_path: Path, home: str | None) -> None:
    (tmp_path / CONTAINER_FILE).write_text(json.dumps({"uid": 1, "gid": 2, "java_home": home}))
    assert read_container_user(tmp_path / CONTAINER_FILE) == ContainerUser(1, 2, home)


def test_pyspark__without_its_jars_is_told_before_java_is_looked_for(tmp_path: Path) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    with pytest.raises(BadInput) as refused:
        java.check_spark_jars_before_java_starts({}, packages=[str(package)])
    assert refused.value.reason_code == "no_spark"
    assert refused.value.exit_code == EXIT_BAD_INPUT
    (package / "jars").mkdir()
    java.check_spark_jars_before_java_starts({}, packages=[str(package)])


def test_pyspark__that_is_not_installed_is_told_with_its_fix() -> None:
    with pytest.raises(BadInput) as refused:
        java.check_spark_jars_before_java_starts({"SPARK_HOME": "/opt/spark"}, packages=[])
    assert refused.value.reason_code == "no_spark"
    assert "PySpark is not installed. A review goes without it." in refused.value.message
    assert "pip install" in (refused.value.hint or "")


def test_versions__without_pyspark_are_a_remark_and_no_failure() -> None:
    versions = Versions(ci_bot="0", python="3.11", sqlmesh="0.236.4", pyspark=None)
    check = check_versions_for_project(versions)
    assert check.status == "warn"
    assert "PySpark not installed" in check.message
    assert (check.fix or "").startswith("A review needs none.")


def test_pyspark__with_a_spark_of_the_projects_own_needs_no_jars(tmp_path: Path) -> None:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    java.check_spark_jars_before_java_starts(
        {"SPARK_HOME": str(tmp_path / "spark")}, packages=[str(tmp_path / "none")]
    )


def test_pyspark__installed_here_has_its_jars() -> None:
    java.check_spark_jars_before_java_starts({})
