"""Which environments a sweep removes, and which it never touches, whatever ledger and GitHub say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.github.port import PullState
from ci_bot.bot.github.urls import find_github_repository, find_github_token
from ci_bot.bot.report.markdown.comments import render_sweep_markdown
from ci_bot.bot.sandbox.answer_validation import (
    SandboxedAnswerRefusedError,
    check_subject_of_sandboxed_answer,
)
from ci_bot.bot.sandbox.worker_run import SandboxedWorkerTimedOut
from ci_bot.bot.worker_client import cleanup
from ci_bot.bot.worker_client.cleanup import (
    AskStates,
    EnvironmentSweptByWorker,
    WorkerSweepOptions,
    judge_environments_for_worker_sweep,
)
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.errors import BadInput, BotError, GitHubUnavailable
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.cleanup_report import (
    CleanupDocument,
    EnvironmentList,
    FoundEnvironment,
    SweepDocument,
    SweepReport,
    SweepRow,
)
from ci_bot.protocol.messages import ListRequest, SweepRequest, Workplace
from ci_bot.redaction import Redactor
from tests.factories import make_cleanup, make_context, on_terminal
from tests.unit.report.dom import parse

VERSIONS = Versions(ci_bot="0", python="3.11")
OPTIONS = WorkerSweepOptions(owner="octo/shop")
CLOSED, OPEN, UNKNOWN = (PullState(state=state) for state in ("closed", "open", "unknown"))
FAILURE = Failure(stage="sweep", reason_code="bad_config", exit_code=2, message="No.", hint="Fix.")


def found(number: int, **changes: Any) -> FoundEnvironment:
    facts: dict[str, Any] = {
        "environment": f"pr_{number}",
        "owner": "octo/shop",
        "pr_number": number,
        "phase": "applied",
        "updated_at": "2026-08-01T00:00:00Z",
    }
    return FoundEnvironment(**facts | changes)


@dataclass
class Worker:
    """Answers like the worker, and remembers what it was asked to remove."""

    environments_there: list[FoundEnvironment]
    clean: Callable[[str], CleanupDocument] = lambda name: make_cleanup(environment=name)
    answer: SweepDocument | Failure | BotError | None = None
    listing: Failure | None = None
    removed: list[str] = field(default_factory=list)
    asked: list[SweepRequest] = field(default_factory=list)
    project_directories: list[str] = field(default_factory=lambda: ["."])
    gateway: str | None = None
    redactor: Redactor = field(default_factory=Redactor)
    workplace: Workplace = field(
        default_factory=lambda: Workplace(repository="/r", cache_dir="/c", scratch_dir="/s")
    )

    make_request = WorkerClient.make_request

    def request_environments(self, ask: ListRequest) -> EnvironmentList | Failure:
        return self.listing or EnvironmentList(
            environments=self.environments_there, seconds=0.1, versions=VERSIONS
        )

    def request_sweep(self, ask: SweepRequest) -> SweepDocument | Failure:
        self.asked.append(ask)
        if isinstance(self.answer, BotError):
            raise self.answer
        if self.answer is not None:
            return self.answer
        self.removed += [target.environment for target in ask.targets]
        return SweepDocument(
            cleanups=[self.clean(target.environment) for target in ask.targets],
            seconds=1.0,
            versions=VERSIONS,
        )


def answers(**states: PullState) -> AskStates:
    return lambda numbers: {int(name[1:]): state for name, state in states.items()}


def run(
    worker: Worker, states: AskStates, heard: list[str] | None = None, **changes: Any
) -> cleanup.WorkerSweepOutcome:
    def on_rescue(row: EnvironmentSweptByWorker) -> None:
        if heard is not None:
            heard.append(row.environment)
            assert worker.removed == [], "a rescue is told before anything is removed"

    options = WorkerSweepOptions(owner="octo/shop", **changes)
    return cleanup.request_sweep_from_worker(worker, options, states, on_rescue)


def test_sweep__removes_what_is_ours_and_closed_and_nothing_else() -> None:
    worker = Worker(
        [
            found(1),
            found(2),
            found(3),
            found(4, owner=None, pr_number=None, phase=None),
            found(5, owner="octo/other"),
            found(6, pinned=True),
            found(7, pr_number=8),
            found(9, environment="pr_009"),
        ]
    )
    heard: list[str] = []
    asked: list[Collection[int]] = []

    def states(numbers: Collection[int]) -> Mapping[int, PullState]:
        asked.append(sorted(numbers))
        return {1: PullState(state="closed", merged=True), 2: OPEN, 3: UNKNOWN}

    swept = run(worker, states, heard)
    assert worker.removed == heard == ["pr_1"]
    assert asked == [[1, 2, 3]], "GitHub is asked once, and only about what might go"
    (ask,) = worker.asked
    assert (ask.targets[0].pr_number, ask.targets[0].merged) == (1, True)
    assert {row.environment: row.standing for row in swept.rows} == {
        "pr_1": "remove",
        "pr_2": "open",
        "pr_3": "unknown",
        "pr_4": "not_recorded",
        "pr_6": "pinned",
        "pr_7": "odd_record",
        "pr_009": "odd_record",
    }
    assert swept.others == 1
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0


def test_sweep__tells_of_another_prefix_and_leaves_what_it_made() -> None:
    """The ledger knows them; whether another workflow sweeps them, it does not."""
    worker = Worker(
        [
            found(1),
            found(11, environment="old_11"),
            found(12, environment="old_12"),
            found(13, environment="old_13"),
            found(14, environment="old_15"),
        ]
    )
    asked: list[Collection[int]] = []

    def states(numbers: Collection[int]) -> Mapping[int, PullState]:
        asked.append(sorted(numbers))
        return {1: OPEN, 11: CLOSED, 12: OPEN, 13: UNKNOWN}

    swept = run(worker, states)
    assert asked == [[1, 11, 12, 13]]
    assert worker.removed == []
    assert {row.environment: row.standing for row in swept.rows} == {
        "pr_1": "open",
        "old_11": "other_prefix",
        "old_12": "open",
        "old_13": "unknown",
        "old_15": "odd_record",
    }
    assert not swept.leftover_environments
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0
    shown = render_sweep_markdown(swept.make_report(), make_context())
    assert "is closed, and it was made under another prefix" in shown


ENVIRONMENTS = st.builds(
    FoundEnvironment,
    environment=st.one_of(
        st.integers(0, 30).map("pr_{}".format),
        st.sampled_from(["prod", "pr", "pr_", "pr_01", "pr_1x", "xpr_1", "dev", "pr_1; drop"]),
    ),
    owner=st.sampled_from(["octo/shop", "octo/other", "octo/shop2", None]),
    pr_number=st.one_of(st.none(), st.integers(0, 30)),
    phase=st.sampled_from(["applying", "applied", "leftover", "something new", None]),
    pinned=st.booleans(),
)
STATES = st.dictionaries(st.integers(0, 30), st.sampled_from([CLOSED, OPEN, UNKNOWN]))


@given(st.lists(ENVIRONMENTS, max_size=12), STATES, st.integers(1, 5), st.booleans())
def test_sweep__whatever_is_found_only_closed_environments_of_ours_go(
    there: list[FoundEnvironment], states: dict[int, PullState], limit: int, dry: bool
) -> None:
    unique = list({item.environment: item for item in there}.values())
    worker = Worker(unique)
    run(worker, lambda numbers: states, max_deletions=limit, dry_run=dry)
    by_name = {item.environment: item for item in unique}
    assert len(worker.removed) <= (0 if dry else limit)
    for name in worker.removed:
        item, number = by_name[name], int(name.removeprefix("pr_"))
        assert name == f"pr_{number}"
        assert number > 0
        assert item.owner == "octo/shop"
        assert item.pr_number in (None, number)
        assert not item.pinned
        assert states[number] is CLOSED


def test_sweep__where_github_does_not_answer_nothing_is_removed() -> None:
    worker = Worker([found(1)])

    def down(numbers: Collection[int]) -> Mapping[int, PullState]:
        raise GitHubUnavailable("GitHub is down.")

    with pytest.raises(GitHubUnavailable):
        run(worker, down)
    assert worker.asked == []


def test_sweep__that_finds_nothing_asks_github_nothing() -> None:
    def never(numbers: Collection[int]) -> Mapping[int, PullState]:
        raise AssertionError("there is nothing to ask about")

    swept = run(Worker([found(4, owner=None)]), never)
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0


def test_sweep__dry_run_names_and_leaves() -> None:
    heard: list[Any] = []
    worker = Worker([found(1), found(2)])
    swept = run(worker, answers(_1=CLOSED, _2=CLOSED), heard, dry_run=True)
    assert worker.asked == []
    assert heard == ["pr_1", "pr_2"]
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0
    assert "would be removed" in on_terminal(swept.make_report())


def test_sweep__over_its_limit_takes_the_oldest_and_leaves_the_rest_for_the_next() -> None:
    worker = Worker(
        [
            found(1, updated_at="2026-08-03T00:00:00Z"),
            found(2, updated_at="2026-08-01T00:00:00Z"),
            found(3, updated_at="2026-08-02T00:00:00Z"),
        ]
    )
    swept = run(worker, answers(_1=CLOSED, _2=CLOSED, _3=CLOSED), max_deletions=2)
    assert worker.removed == ["pr_2", "pr_3"]
    assert [row.environment for row in swept.leftover_environments] == ["pr_1"]
    assert "max-deletions" in (swept.leftover_environments[0].waits or "")
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 4


def test_sweep__that_leaves_something_is_exit_4_and_the_others_are_gone() -> None:
    stuck = FAILURE.model_copy(update={"exit_code": 4, "message": "1 object is left."})

    def clean(name: str) -> CleanupDocument:
        if name == "pr_1":
            return make_cleanup(environment=name, result="incomplete", failure=stuck)
        return make_cleanup(environment=name)

    swept = run(Worker([found(1), found(2)], clean=clean), answers(_1=CLOSED, _2=CLOSED))
    assert [(row.environment, row.waits) for row in swept.leftover_environments] == [
        ("pr_1", "1 object is left.")
    ]
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 4


def test_sweep__of_a_worker_that_ended_early_leaves_what_it_did_not_reach() -> None:
    partial = SweepDocument(
        cleanups=[make_cleanup(environment="pr_1")], seconds=1.0, versions=VERSIONS
    )
    worker = Worker([found(1), found(2)], answer=partial)
    swept = run(worker, answers(_1=CLOSED, _2=CLOSED))
    assert [row.environment for row in swept.leftover_environments] == ["pr_2"]
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 4
    late = SandboxedWorkerTimedOut("The worker did not finish in time.")
    late.answer = partial
    swept = run(Worker([found(1), found(2)], answer=late), answers(_1=CLOSED, _2=CLOSED))
    assert [(row.environment, row.waits) for row in swept.leftover_environments] == [
        ("pr_2", "The worker did not finish in time.")
    ]
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 1


@pytest.mark.parametrize("answer", [FAILURE, BadInput("No.")])
def test_sweep__with_a_failure_of_the_worker_has_its_exit_code(answer: Any) -> None:
    if isinstance(answer, BadInput):
        with pytest.raises(BadInput):
            run(Worker([found(1)], answer=answer), answers(_1=CLOSED))
        return
    swept = run(Worker([found(1)], answer=answer), answers(_1=CLOSED))
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 2
    assert [row.environment for row in swept.leftover_environments] == ["pr_1"]


def test_sweep__whose_list_fails_says_why() -> None:
    with pytest.raises(BotError) as caught:
        run(Worker([], listing=FAILURE), answers())
    assert (caught.value.exit_code, caught.value.reason_code) == (2, "bad_config")


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("applied", "never ran"),
        ("applying", "an apply was running"),
        ("cleaning", "cut off"),
        ("leftover", "could not remove everything"),
        (None, "never ran"),
    ],
)
def test_cause__follows_what_the_record_says(phase: str | None, words: str) -> None:
    (row,) = judge_environments_for_worker_sweep(
        [found(1, phase=phase)], OPTIONS, answers(_1=CLOSED)
    )
    assert words in (row.why_still_there or "")


@pytest.mark.parametrize(
    "cleanups",
    [
        [make_cleanup(environment="pr_9")],
        [make_cleanup(environment="pr_1"), make_cleanup(environment="pr_1")],
        [make_cleanup(environment="pr_1", failure=FAILURE.model_copy(update={"exit_code": 77}))],
    ],
)
def test_answer__about_what_was_not_asked_is_refused(cleanups: list[CleanupDocument]) -> None:
    worker = Worker([found(1)])
    run(worker, answers(_1=CLOSED))
    document = SweepDocument(cleanups=cleanups, seconds=1.0, versions=VERSIONS)
    with pytest.raises(SandboxedAnswerRefusedError):
        check_subject_of_sandboxed_answer(document, worker.asked[0])


def row_of(name: str, **changes: Any) -> SweepRow:
    facts: dict[str, Any] = {"environment": name, "pr_number": 7, "standing": "remove"}
    return SweepRow(**facts | {"result": "incomplete", "waits": name, "cause": name} | changes)


@given(st.text(min_size=1, max_size=40), st.sampled_from(["remove", "not_recorded", "open"]))
def test_summary__holds_no_markup_of_anybody_else(name: str, standing: str) -> None:
    context = make_context(marker=None)
    plain = render_sweep_markdown(
        SweepReport(dry_run=False, rows=[row_of("x", standing=standing)], others=0), context
    )
    report = SweepReport(dry_run=False, rows=[row_of(name, standing=standing)], others=0)
    page, expected = parse(render_sweep_markdown(report, context)), parse(plain)
    assert set(page.tags - expected.tags) <= {"code"}
    assert page.tags["td"] == expected.tags["td"]
    assert page.links == expected.links


def test_summary__of_thousands_of_environments_stays_below_the_runners_limit() -> None:
    rows = [row_of(f"pr_{number}", pr_number=number) for number in range(5_000)]
    rows += [row_of(f"pr_{number}", standing="not_recorded") for number in range(5_000)]
    text = render_sweep_markdown(SweepReport(dry_run=False, rows=rows, others=0), make_context())
    assert len(text.encode()) < 500_000
    assert "4,500 more" in text


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/octo/shop",
        "https://github.com/octo/shop.git",
        "https://ada@github.com/octo/shop.git/",
        "git@github.com:octo/shop.git",
        "ssh://git@github.com:22/octo/shop.git",
    ],
)
def test_repository_of__reads_the_origin(origin: str) -> None:
    assert find_github_repository({}, origin) == "octo/shop"


def test_repository_of__other_hosts_need_their_api() -> None:
    with pytest.raises(BadInput, match=r"git\.example"):
        find_github_repository({}, "https://git.example/octo/shop")
    api = {"GITHUB_API_URL": "https://git.example/api/v3"}
    assert find_github_repository(api, "https://git.example/octo/shop") == "octo/shop"


@pytest.mark.parametrize("origin", [None, "", "/srv/git/shop", "https://github.com/octo", "x"])
def test_repository_of__what_names_none_is_a_clear_failure(origin: str | None) -> None:
    with pytest.raises(BadInput):
        find_github_repository({}, origin)
    assert find_github_repository({"GITHUB_REPOSITORY": "octo/shop"}, origin) == "octo/shop"


def test_token_of__takes_the_first_that_is_set() -> None:
    assert find_github_token({"GH_TOKEN": "b", "GITHUB_TOKEN": " a "}) == "a"
    with pytest.raises(BadInput) as caught:
        find_github_token({"GITHUB_TOKEN": " "})
    assert caught.value.exit_code == 2
