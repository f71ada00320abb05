"""Which Java options a run gets."""

from __future__ import annotations

from ci_bot.worker import java


def test_brief_run__gets_the_quick_compiler_and_keeps_the_projects_options() -> None:
    assert java.for_a_brief_run({}) == {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"}
    own = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=4 -Xss4m"}
    assert java.for_a_brief_run(own) == {
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4 -Xss4m"
    }, "Java takes the last of two values, so the project's own wins"
