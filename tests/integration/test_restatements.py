"""A restatement that belongs to a pull request: what is foretold of it is what SQLMesh does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.messages import RestateAnswer
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement, RestatementWish
from ci_bot.protocol.review_report import Report
from tests.projects.duck import run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

pytestmark = pytest.mark.slow

UNTIL = "2024-01-20"
AT = "2024-02-01T10:00:00Z"


def sql_model(name: str, kind: str, query: str, more: str = "") -> str:
    return f"MODEL (name {name}, kind {kind}{more});\n\n{query}\n"


BY_DAY = "INCREMENTAL_BY_TIME_RANGE (time_column order_date{more})"
DAYS = "SELECT order_id, order_date FROM {source} WHERE order_date BETWEEN @start_ds AND @end_ds"
MODELS = {
    # Its rows come from outside, which is what changes without code.
    "late": sql_model(
        "shop.late",
        BY_DAY.format(more=""),
        "SELECT order_id, order_date FROM raw.events WHERE order_date BETWEEN @start_ds AND @end_ds",
    ),
    "by_day": sql_model("shop.by_day", BY_DAY.format(more=""), DAYS.format(source="shop.late")),
    "by_key": sql_model(
        "shop.by_key",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)",
        "SELECT order_id FROM shop.late WHERE order_date BETWEEN @start_ds AND @end_ds",
    ),
    "kept": sql_model(
        "shop.kept",
        BY_DAY.format(more=", disable_restatement true"),
        DAYS.format(source="shop.late"),
    ),
    "ahead": sql_model(
        "shop.ahead", BY_DAY.format(more=", forward_only true"), DAYS.format(source="shop.by_day")
    ),
    "versions": sql_model(
        "shop.versions",
        "SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [order_date])",
        "SELECT order_id, order_date FROM shop.late",
    ),
    "parts": sql_model("shop.parts", "EMBEDDED", "SELECT order_id FROM shop.late"),
    "whole": sql_model("shop.whole", "FULL", "SELECT order_id FROM shop.parts"),
}
EXTERNAL = "- name: raw.events\n  columns:\n    order_id: INT\n    order_date: DATE\n"
OWNERS = "owners:\n  - models: shop.late\n    github: ['@alice']\n"
FILES: Files = {
    **{f"project/models/{name}.sql": text for name, text in MODELS.items()},
    "project/external_models.yaml": EXTERNAL,
    "project/.sqlmesh-review.yaml": OWNERS,
    "CODEOWNERS": "/project/models/by_* @bob\n",
}


@dataclass(frozen=True)
class Scene:
    """Prod is built up to UNTIL, and pull request 7 changes nothing that SQLMesh reads."""

    made: Repository
    commits: RequestedReviewCommits

    @property
    def client(self) -> Client:
        return Client(self.made.root, projects=("project",))

    def ask(
        self, model: str, start: str | None = None, end: str | None = None, **options: Any
    ) -> Report:
        wish = RestatementWish(
            model=model, start=start, end=end, by="alice", at=AT, reason="late", comment_id=9
        )
        return self.review(wish=wish, **options)

    def review(self, number: int = 7, **options: Any) -> Report:
        return self.client.review(
            "pr_7", baseline="state", number=number, **{"commits": self.commits, **options}
        )

    def record(self, item: RecordedRestatement | None, model: str) -> RestateAnswer:
        return self.client.restate(model, item, 7)

    def undo(self) -> None:
        """The project as the pull request has it; state and warehouse beside it stay as they are."""
        (self.made.shop.project / "models/more.sql").unlink(missing_ok=True)
        self.made.git("checkout", "-q", self.commits.head or "", "--", "project")

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.made.root / "warehouse.duckdb")) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root: Path = tmp_path_factory.mktemp("restated")
    made = write_repository(root, FILES)
    scene = Scene(made, RequestedReviewCommits())
    scene.sql(
        "CREATE SCHEMA raw; CREATE TABLE raw.events AS SELECT i AS order_id, "
        "CAST(DATE '2024-01-01' + i::INT AS DATE) AS order_date FROM range(19) AS days(i)"
    )
    run_prod(made.shop, UNTIL)
    yield Scene(made, made.change({"NOTES.md": "Late rows have come.\n"}))


def planned(report: Report) -> ProdRestatement:
    assert report.failure is None, report.failure
    assert report.refused_wish is None, report.refused_wish
    return report.prod_restatements[-1]


def ranges(item: ProdRestatement) -> dict[str, tuple[str | None, str | None, int]]:
    def day(text: str | None) -> str | None:
        return text and text[:10]

    return {work.model: (day(work.start), day(work.end), work.intervals) for work in item.work}


WHOLE = (None, None, 1)
TWO_DAYS = ("2024-01-05", "2024-01-07", 2)
ALL_DAYS = ("2024-01-01", "2024-01-20", 19)


def test_restatement__is_foretold_with_all_that_reads_the_model(scene: Scene) -> None:
    item = planned(scene.ask("shop.late", "2024-01-05", "2024-01-06"))
    assert ranges(item) == {
        "shop.late": TWO_DAYS,
        "shop.by_day": TWO_DAYS,
        "shop.ahead": TWO_DAYS,
        # Of this kind only all of history can be built again, and not beyond prod's data.
        "shop.by_key": ALL_DAYS,
        "shop.whole": WHOLE,
    }
    assert item.kept == ["shop.kept", "shop.versions"]
    assert (item.recorded.start, item.recorded.end) == (
        "2024-01-05T00:00:00Z",
        "2024-01-07T00:00:00Z",
    )
    assert item.path == "project/models/late.sql"


@pytest.mark.parametrize(
    ("model", "rebuilt"),
    [
        # Where rows come from outside: what reads them is built again.
        ("raw.events", {"shop.late", "shop.by_day", "shop.ahead", "shop.by_key", "shop.whole"}),
        ("shop.parts", {"shop.whole"}),
        ("shop.ahead", {"shop.ahead"}),
        ("SHOP.By_Day", {"shop.by_day", "shop.ahead"}),
    ],
    ids=["an external model", "an embedded one", "a forward-only one", "in other letters"],
)
@pytest.mark.by_day(2)
def test_restatement__of_other_kinds(scene: Scene, model: str, rebuilt: set[str]) -> None:
    assert ranges(planned(scene.ask(model))).keys() == rebuilt


@pytest.mark.parametrize(
    ("asked", "reason", "words"),
    [
        (("shop.customers", None, None), "not_restatable", "is a seed"),
        (("shop.kept", None, None), "not_restatable", "`disable_restatement`"),
        (("shop.versions", None, None), "not_restatable", "SCD_TYPE_2_BY_COLUMN"),
        (("shop.lte", None, None), "unknown_model", "has no model 'shop.lte'"),
        (("shop.late+", None, None), "unknown_model", "has no model"),
        (("tag:x", None, None), "unknown_model", "has no model"),
        (("shop.late", "soon-ish", None), "bad_date", "is not a date"),
        (("shop.late", "2024-01-07", "2024-01-05"), "bad_window", "is not before the end"),
        (("shop.late", "2024-02-03", None), "bad_window", "is not before the present"),
        (("shop.late", "2024-01-25", None), "bad_window", "Prod's data ends at"),
        (("shop.late", "2023-01-01", "2023-02-01"), "bad_window", "Prod has nothing of"),
    ],
)
@pytest.mark.by_day(4)
def test_restatement__that_cannot_be_is_one_sentence_with_the_fix(
    scene: Scene, asked: tuple[str, str | None, str | None], reason: str, words: str
) -> None:
    report = scene.ask(*asked)
    assert report.failure is None
    refused = report.refused_wish
    assert refused is not None, report.prod_restatements
    assert refused.reason_code == reason, refused
    assert words in refused.message
    assert refused.hint
    assert report.prod_restatements == []


def test_restatement__of_what_the_merge_builds_is_refused(scene: Scene) -> None:
    text = MODELS["by_day"].replace("order_id,", "order_id + 1 AS order_id,")
    commits = scene.made.change({"project/models/by_day.sql": text})
    try:
        refused = scene.ask("shop.by_day", commits=commits).refused_wish
        assert refused is not None
        assert "a new table and builds all of it" in refused.message
        # What it reads can be built again, and then both are.
        assert "shop.by_day" in ranges(planned(scene.ask("shop.late", commits=commits)))
    finally:
        scene.undo()


def test_restatement__has_the_owners_of_a_model_that_does_not_change(scene: Scene) -> None:
    for model, owner in (("shop.late", "alice"), ("shop.by_day", "bob"), ("shop.whole", None)):
        owners = {item.model: item.logins for item in scene.ask(model).owners}
        assert owners == ({model: [owner]} if owner else {})


@pytest.mark.night
def test_restatement__follows_no_file_that_the_author_has_moved(scene: Scene) -> None:
    """The file decides whose a model is, and its author must not choose it."""
    made = scene.made
    own = made.read("project/models/by_day.sql")
    commits = made.change(
        # It changes hands: nothing of either model differs for SQLMesh.
        {
            "project/models/by_day.sql": MODELS["whole"],
            "project/models/whole.sql": own,
        }
    )
    try:
        assert scene.ask("shop.whole", commits=commits).owners == []
        assert scene.ask("shop.by_day", commits=commits).owners == []
    finally:
        scene.undo()


def test_restatement__words_count_from_the_comment(scene: Scene) -> None:
    item = planned(scene.ask("shop.late", "4 weeks ago", "3 weeks ago"))
    assert (item.recorded.start, item.recorded.end) == (
        "2024-01-04T00:00:00Z",
        "2024-01-11T00:00:00Z",
    )


def test_restatement__is_no_change_and_counts_anyway(scene: Scene) -> None:
    report = scene.ask("shop.late")
    assert report.changes == []
    assert report.decision == "go"
    (risk,) = [risk for risk in report.risks if risk.rule == "restated-after-merge"]
    assert risk.severity == "medium"
    assert "`@alice` asks prod to build it again with all of its history" in risk.evidence
    assert report.prod_plan is not None
    assert report.prod_plan.cost is not None
    assert report.prod_plan.cost.intervals == 4 * 19 + 1


def test_restatement__is_recorded_replaced_followed_and_taken_back(scene: Scene) -> None:
    first = planned(scene.ask("shop.late")).recorded
    assert scene.record(first, "shop.late").restatements == [first]
    second = planned(scene.ask("shop.late", "2024-01-05", "2024-01-06")).recorded
    assert scene.record(second, "shop.late").restatements == [second], "it is replaced"

    (item,) = scene.review().prod_restatements
    assert (item.recorded, item.problem) == (second, None)
    assert scene.review(number=8).prod_restatements == [], "it is of one pull request"

    # It follows the pull request over a commit that is about something else.
    made = scene.made
    orders = made.read("project/models/orders.sql")
    try:
        commits = made.change({"project/models/orders.sql": orders.replace("* 10", "* 20")})
        report = scene.review(commits=commits)
        assert [one.problem for one in report.prod_restatements] == [None]
        # The model changes, or more would be built again: it does not hold, and weighs more.
        late = MODELS["late"].replace("order_id,", "order_id + 0 AS order_id,")
        commits = made.change({"project/models/late.sql": late})
        report = scene.review(commits=commits)
        (item,) = report.prod_restatements
        assert item.problem is not None
        assert item.window is None
        (risk,) = [risk for risk in report.risks if risk.rule == "restated-after-merge"]
        assert risk.severity == "high"
        assert "A deployment refuses it" in risk.evidence
        scene.undo()
        more = sql_model("shop.more", "FULL", "SELECT order_id FROM shop.late")
        commits = made.change({"project/models/more.sql": more})
        report = scene.review(commits=commits)
        assert report.failure is None, report.failure
        (item,) = report.prod_restatements
        assert item.problem == "It would also build `shop.more` again, which nobody has reviewed."
    finally:
        scene.undo()

    answer = scene.record(None, "shop.late")
    assert (answer.before, answer.restatements) == ([second], [])
    assert scene.review().prod_restatements == []


@pytest.mark.night
def test_restatement__does_what_was_foretold(scene: Scene) -> None:
    """SQLMesh itself carries it out, as the deployment asks for it."""
    item = planned(scene.ask("shop.late", "2024-01-05", "2024-01-06"))
    assert item.window is not None
    scene.sql("UPDATE raw.events SET order_id = order_id + 100")
    set_console(NoopConsole())
    context = Context(paths=[str(scene.made.shop.project)])
    try:
        plan = context.plan_builder(
            "prod",
            restate_models=["shop.late"],
            start=item.window.start,
            end=item.window.end,
            execution_time=item.window.execution_time,
            skip_tests=True,
        ).build()
        built = {
            one.snapshot_id.name.split('"')[-2]: len(one.intervals)
            for one in plan.missing_intervals
        }
        context.apply(plan)
        ends = {
            name.split('"')[-2]: end.date().isoformat()
            for name, end in context._get_max_interval_end_per_model({}, None).items()
        }
    finally:
        context.close()
    # SQLMesh counts days of a FULL model, which is one computation.
    assert built.pop("whole") == 19
    foretold = {work.model.split(".")[1]: work.intervals for work in item.work}
    assert built == {name: count for name, count in foretold.items() if name != "whole"}
    new = scene.sql("SELECT order_date::TEXT FROM shop.late WHERE order_id >= 100 ORDER BY 1")
    assert [day for (day,) in new] == ["2024-01-05", "2024-01-06"]
    assert scene.sql("SELECT COUNT(*) FROM shop.kept WHERE order_id >= 100") == [(0,)]
    assert set(ends.values()) == {UNTIL}, "nothing of prod reaches further than before"
