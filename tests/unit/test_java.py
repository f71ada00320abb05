"""Which Java options a run gets."""

from __future__ import annotations

from ci_bot.worker import java


def test_statements_only__get_the_quick_compiler_and_keep_the_projects_options() -> None:
    assert java.for_statements_only({}) == {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"}
    own = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=4 -Xss4m"}
    assert java.for_statements_only(own) == {
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4 -Xss4m"
    }, "Java takes the last of two values, so the project's own wins"
