"""Input that cannot be right: one clear message with the fix, the right exit code, and no harm done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest

from tests import nights
from tests.e2e.job import Job, Outcome, Runner
from tests.e2e.scene import Change, Scene, add_orders
from tests.github_standin import events
from tests.github_standin.scripted import ScriptedServer
from tests.integration.test_review import digest, state_rows
from tests.projects import Shop

# Without a pull request: what is wrong is known before anything is asked of GitHub.


@dataclass(frozen=True)
class Wrong:
    """A run that cannot start, and what its one message must say."""

    event: str = "pull_request"
    payload: object = field(default_factory=lambda: events.pull_request("opened"))
    inputs: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    reason: str = "bad_input"


def without(payload: dict[str, object], *keys: str) -> dict[str, object]:
    """A copy of an event that lacks the key at this path."""
    copy = dict(payload)
    first, *rest = keys
    if rest:
        copy[first] = without(copy[first], *rest)
    else:
        del copy[first]
    return copy


WRONG = {
    "an event file that is no JSON": Wrong(
        payload="{not json", says=("not JSON", "GITHUB_EVENT_PATH"), reason="event_unreadable"
    ),
    "an empty event file": Wrong(payload="", says=("not JSON",), reason="event_unreadable"),
    "an event file that holds a list": Wrong(
        payload="[]", says=("not a JSON object",), reason="event_unreadable"
    ),
    "an event without the pull request": Wrong(
        payload=without(events.pull_request("opened"), "pull_request"),
        says=("lacks `pull_request`", "hand-made"),
        reason="event_unreadable",
    ),
    "an event without the head": Wrong(
        payload=without(events.pull_request("opened"), "pull_request", "head", "sha"),
        says=("lacks `pull_request.head.sha`",),
        reason="event_unreadable",
    ),
    "no event file": Wrong(
        variables={"GITHUB_EVENT_PATH": "/nowhere/event.json"},
        says=("event file cannot be read",),
        reason="event_unreadable",
    ),
    "one wrong input": Wrong(
        inputs={"fail-on": "sometimes"},
        says=("`fail-on` must be one of blocker, high, never", "'sometimes'", "Correct the inputs"),
    ),
    "several wrong inputs": Wrong(
        inputs={"mode": "reviews", "plan-id": "xyz", "timeout-minutes": "-1", "table-diff": "yes"},
        says=("`mode`", "`plan-id`", "`timeout-minutes`", "`table-diff`"),
    ),
    "an unknown input": Wrong(
        variables={"CI_BOT_PROJEKT": "."}, says=("`CI_BOT_PROJEKT` is not an input",)
    ),
    "no repository": Wrong(variables={"GITHUB_REPOSITORY": ""}, says=("GITHUB_REPOSITORY",)),
    "an API that is not https": Wrong(
        variables={"GITHUB_API_URL": "http://github.example/api"},
        says=("GITHUB_API_URL", "no https address"),
    ),
    "a dispatch without a number": Wrong(
        event="workflow_dispatch",
        payload=events.workflow_dispatch({}),
        says=("No pull request is named", "`pr-number`"),
        reason="missing_pr_number",
    ),
    "a dispatch with a number that is none": Wrong(
        event="workflow_dispatch",
        payload=events.workflow_dispatch({"pr-number": "seven"}),
        says=("`pr-number` is not a positive whole number",),
    ),
    "a trigger that is not safe": Wrong(
        event="pull_request_target",
        payload=events.pull_request("opened"),
        says=("pull_request_target", "Use `on: pull_request`"),
        reason="unsafe_trigger",
    ),
    "a mode that cannot be": Wrong(
        inputs={"mode": "apply"},
        says=("`mode: apply` cannot be done on `pull_request`",),
        reason="mode_mismatch",
    ),
}


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.replace(" ", "-"))
def test_bad_input__before_anything_is_done__is_one_message(
    case: str, scripted_github: ScriptedServer, tmp_path: Path
) -> None:
    wrong = WRONG[case]
    runner = Runner(
        api_url=scripted_github.url,
        repository="acme/warehouse",
        token="ghs_" + "badinput" * 4,
        home=tmp_path / "runner",
    )
    job = Job(
        wrong.event,
        wrong.payload,
        inputs=wrong.inputs,
        variables=wrong.variables,
        run_id=1,
    )

    outcome = runner.run(job, tmp_path)

    assert outcome.exit_code == 2, outcome.stderr
    assert len(outcome.errors) == 1
    for text in wrong.says:
        assert text in outcome.errors[0]
    assert outcome.outputs["reason-code"] == wrong.reason
    assert outcome.result == {"schema_version": 1, "reason_code": wrong.reason, "exit_code": 2}
    assert "Traceback" not in outcome.stdout + outcome.stderr
    assert scripted_github.requests == []


# With a pull request: its comment says what is wrong, too.


@dataclass(frozen=True)
class Broken:
    """A project or a workflow that cannot be planned."""

    edit: Callable[[Shop], object]
    exit_code: int
    reason: str
    says: tuple[str, ...]
    inputs: dict[str, str] = field(default_factory=dict)


def nothing_more(shop: Shop) -> None:
    add_orders(shop)


BROKEN = {
    "a model that does not parse": Broken(
        lambda shop: shop.write("models/revenue.sql", "MODEL (name shop.revenue); SELEC 1"),
        1,
        "failed",
        ("project/models/revenue.sql", "Invalid expression", "Correct it and push"),
    ),
    "a configuration that does not parse": Broken(
        lambda shop: shop.write("config.yaml", "gateways: ["),
        2,
        "bad_config",
        ("project/config.yaml", "Correct the configuration"),
    ),
    "no configuration": Broken(
        lambda shop: (shop.project / "config.yaml").unlink(),
        2,
        "no_config",
        ("config.yaml or config.py", "in project.", "Name its directory"),
    ),
    "an unknown gateway": Broken(
        nothing_more,
        2,
        "unknown_gateway",
        ("sparkle", "spark"),
        inputs={"gateway": "sparkle"},
    ),
    "a project that is not there": Broken(
        nothing_more,
        2,
        "bad_project_path",
        ("Project path nowhere does not exist", "Input project"),
        inputs={"project": "nowhere"},
    ),
    "a project outside of the repository": Broken(
        nothing_more,
        2,
        "bad_project_path",
        ("../..", "leads out of the repository"),
        inputs={"project": "../.."},
    ),
    "variables that the worker must not see": Broken(
        nothing_more,
        2,
        "bad_worker_env",
        ("GITHUB_TOKEN", "worker-env"),
        inputs={"worker-env": "GITHUB_TOKEN"},
    ),
}


# The others end before a project is loaded, in a moment.
BROKEN_AT_NIGHT = {"a configuration that does not parse", "no configuration"}


@pytest.mark.parametrize(
    "case", nights.cases(BROKEN.keys(), by_day=BROKEN.keys() - BROKEN_AT_NIGHT)
)
@pytest.mark.by_day(2)
def test_bad_input__of_a_pull_request__is_in_its_comment(case: str, scene: Scene) -> None:
    broken = BROKEN[case]
    change = scene.open("broken", broken.edit)
    before = digest(scene.shop.state)

    outcome = change.review("opened", inputs=broken.inputs)

    assert_told(outcome, change, "plan_failed", broken.exit_code, broken.reason, broken.says)
    assert outcome.outputs["decision"] == "no_go"
    assert outcome.document("report")["failure"]["reason_code"] == broken.reason
    assert digest(scene.shop.state) == before


@pytest.mark.night
def test_bad_input__after_a_good_review__keeps_its_plan_below(scene: Scene) -> None:
    change = scene.open("broken", add_orders)
    change.review("opened")
    comment, plan = change.sticky_id(), change.marker().plan

    change.push(lambda shop: shop.write("models/revenue.sql", "this is no SQL ("))
    outcome = change.review("synchronize")

    assert outcome.exit_code == 1
    assert change.sticky_id() == comment
    assert "The last plan that worked" in change.sticky()
    marker = change.marker()
    assert marker.plan is None, "what failed cannot be applied"
    assert [entry.plan for entry in marker.history] == [plan]
    assert len(outcome.requests) <= 7, outcome.requests
    assert len(outcome.writes) == 4, "the comment twice, the check, and the note of the decision"
    assert "No-Go" in change.notes()[0]


def test_bad_input__a_state_of_another_version__says_who_must_do_what(
    scene: Scene, tmp_path: Path
) -> None:
    older = tmp_path / "older.duckdb"
    older.write_bytes(scene.shop.state.read_bytes())
    with duckdb.connect(str(older)) as connection:
        connection.execute("UPDATE sqlmesh._versions SET schema_version = 1")
    rows = state_rows(older)

    def to_older(shop: Shop) -> None:
        shop.edit("config.yaml", str(scene.shop.state), str(older))

    change = scene.open("older", to_older)

    outcome = change.review("opened")

    says = ("another version of SQLMesh", "sqlmesh migrate", "never migrates")
    assert_told(outcome, change, "plan_failed", 2, "state_version", says)
    assert state_rows(older) == rows


@pytest.mark.parametrize("broken", nights.cases(["missing", "failing"], by_day=["missing"]))
def test_bad_input__spark_that_does_not_start__leaves_nothing_half_done(
    scene: Scene, tmp_path: Path, broken: str
) -> None:
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    if broken == "failing":
        java = home / "bin" / "java"
        java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\nexit 1\n")
        java.chmod(0o755)
    change = scene.open("add-orders", add_orders)
    plan = str(change.review("opened").outputs["plan-id"])
    before = sqlmesh_rows(scene.shop)

    outcome = change.dispatch({"plan-id": plan}, variables={"JAVA_HOME": str(home)})

    says: tuple[str, ...] = ("JAVA_HOME is", "no bin/java in it", "Java 17")
    if broken == "failing":
        says = (
            "Spark does not start on Java 8 at",
            str(home),
            "Spark 3.5 runs on Java 8, 11 and 17",
        )
    reason = "no_java" if broken == "missing" else "spark_not_started"
    assert_told(outcome, change, "refused", 2, reason, says)
    assert change.marker().plan == plan, "once Java is there the same plan can be applied"
    assert sqlmesh_rows(scene.shop) == before


def sqlmesh_rows(shop: Shop) -> dict[str, list[tuple[object, ...]]]:
    """SQLMesh's own part of the state."""
    return {
        name: rows for name, rows in state_rows(shop.state).items() if name.startswith("sqlmesh.")
    }


def assert_told(
    outcome: Outcome,
    change: Change,
    phase: str,
    exit_code: int,
    reason: str,
    says: tuple[str, ...],
) -> None:
    """Annotation, comment, summary and outputs say the same, and none of them shows a traceback."""
    assert outcome.exit_code == exit_code, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == reason
    assert len(outcome.errors) == 1, outcome.errors
    assert change.marker().phase == phase
    for text in says:
        for place in (outcome.errors[0], change.sticky(), outcome.summary):
            assert text in place.replace("`", ""), text
    assert len(change.comments()) == 1
