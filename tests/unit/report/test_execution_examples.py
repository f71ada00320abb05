"""What running changed queries showed is one claim, in the comment, the page and the terminal."""

from __future__ import annotations

import pytest

from ci_bot.bot.report.html.findings import HtmlReportSources
from ci_bot.bot.report.html.models import make_models_section
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.model.execution_examples import GENERATED, NO_WITNESS, WITNESS
from ci_bot.protocol.plan import ColumnChange
from ci_bot.protocol.review_inputs import (
    ExampleInput,
    ExampleOutput,
    ExecutionExample,
    ModelExecution,
    WitnessTest,
)
from ci_bot.protocol.review_report import Report
from tests.factories import make_change, make_context, make_report, make_risk

LATE = ExecutionExample(
    inputs=[
        ExampleInput(
            table="stg.flights",
            columns=["carrier", "delay"],
            rows=[["'a|b`'", "15"]],
        )
    ],
    columns=["carrier", "late"],
    outputs=[ExampleOutput(before=["'a|b`'", "0"], after=["'a|b`'", "1"])],
    differing=["late"],
)
GONE = ExecutionExample(
    inputs=[ExampleInput(table="stg.flights", columns=[], rows=[[], []])],
    columns=["n"],
    outputs=[ExampleOutput(before=["2"], after=None)],
    differing=[],
)


def executed(example: ExecutionExample | None = None, **more: object) -> ModelExecution:
    values = {"model": "mart.delays", "result": "differs", "data_sets": 3, "example": example}
    return ModelExecution.model_validate({**values, **more})


def make(*executions: ModelExecution, **more: object) -> Report:
    return make_report(changes=[make_change("mart.delays")], executions=list(executions), **more)


def comment_of(report: Report) -> str:
    return str(render_review_comment(report, make_context()).text)


def test_example__is_one_line_on_the_first_screen() -> None:
    top, _, _ = comment_of(make(executed(LATE))).partition("<details>")

    assert "For example, `mart.delays` gives `late` `0` → `1` if `carrier` is" in top
    assert "`delay` is `15` (a generated row)." in top


def test_example__is_a_table_in_the_fold_with_changed_cells_marked() -> None:
    comment = comment_of(make(executed(LATE)))

    assert "What the changed queries give on generated rows (1 example)" in comment
    assert GENERATED.split(";")[0] in comment
    assert "| **`0`** |" in comment
    assert "| **`1`** |" in comment
    assert "a\\|b" in comment  # a pipe does not split the cell


TEST = WitnessTest(path="tests/test_delays_late.yaml", text="# ```\ntest_delays_late:\n  a: 1\n")


def test_example__has_its_unit_test_in_a_fold_of_its_own() -> None:
    comment = comment_of(make(executed(LATE, witness=TEST)))
    _, _, fold = comment.partition(f"<summary>{WITNESS}</summary>")

    assert "For `tests/test_delays_late.yaml`; `ci-bot witness mart.delays --write` writes" in fold
    assert "````yaml\n# ```\ntest_delays_late:\n  a: 1\n" in fold.partition("</details>")[0]
    page = str(
        make_models_section(HtmlReportSources(make(executed(LATE, witness=TEST)), make_context()))
    )
    assert "test_delays_late.yaml" in page


def test_example__without_a_unit_test_says_why() -> None:
    reason = "SQLMesh's unit test passes without the change, too"
    report = make(executed(LATE, no_witness=reason))

    assert f"{NO_WITNESS} `{reason}`." in comment_of(report)
    assert reason in str(make_models_section(HtmlReportSources(report, make_context())))


def test_example__of_a_row_that_goes_says_so() -> None:
    comment = comment_of(make(executed(GONE)))

    assert "`stg.flights`, 2 of any rows" in comment
    assert "| after: no row |" in comment
    assert "For example" not in comment  # not of two rows


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"result": "alike", "data_sets": 41},
            "Not proved to be the same, and not told apart by 41 generated data sets: `mart.delays`.",
        ),
        (
            {"result": "not_tried", "reason": "uuid()"},
            "Not tried on generated rows, because of `uuid()`: `mart.delays`.",
        ),
    ],
)
def test_model_without_an_example__is_named_with_what_is_known(
    more: dict[str, object], text: str
) -> None:
    assert text in comment_of(make(executed(None, **more)))


def test_model_with_other_columns__was_compared_in_those_that_both_have() -> None:
    added = ColumnChange(name="late", before=None, after="int")
    report = make_report(
        changes=[make_change("mart.delays", columns=[added])],
        executions=[executed(None, result="alike", data_sets=41)],
    )

    told = "not told apart by 41 generated data sets in the columns that both versions have"
    assert told in comment_of(report)


def test_model_that_is_proved__is_not_named_again() -> None:
    proved = make_risk("same-result", severity="info", model="mart.delays")
    report = make(executed(None, result="alike"), risks=[proved])

    assert "not told apart" not in comment_of(report)


def test_page__has_the_same_tables() -> None:
    parts = make_models_section(HtmlReportSources(make(executed(LATE)), make_context()))
    text = str(parts)

    assert GENERATED in text
    assert "mart.delays reads stg.flights" in text
    assert "● 1" in text
