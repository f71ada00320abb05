"""Answers that are not believed: wrong subject, forged, oversize, not quite JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox.answer_validation import (
    SandboxedAnswerRefusedError,
    check_json_of_sandboxed_worker,
    check_subject_of_sandboxed_answer,
    read_answer_of_sandboxed_worker,
)
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Contract, Failure, Versions
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import (
    ANSWER,
    ApplyRequest,
    CleanupRequest,
    FailedAnswer,
    Owner,
    ReviewRequest,
    Workplace,
)
from ci_bot.protocol.plan import (
    AuditsCheck,
    Checks,
    Cost,
    Lineage,
    LintCheck,
    TableDiffCheck,
    TestsCheck,
    Window,
)
from ci_bot.protocol.plan_identity import PlanFlags, PlanIdentity
from ci_bot.protocol.review_report import Project, ReviewFacts
from tests.oracle.fuzzing import caught, fuzz

PLAN = "ab" * 32
VERSIONS = Versions(ci_bot="0", python="3.11")
COMMON: dict[str, Any] = {
    "projects": ["."],
    "workplace": Workplace(repository="/r", cache_dir="/c", scratch_dir="/s"),
    "owner": Owner(name="org/repo", pr_number=7),
    "environment": "pr_7",
}
REVIEW = ReviewRequest(**COMMON)
APPLY = ApplyRequest(**COMMON, plan_id=PLAN[:12])
PROBE = ApplyRequest(**COMMON, plan_id=PLAN, probe=True)
WHOLE_APPLY = ApplyRequest(**COMMON, plan_id=PLAN)
CLEANUP = CleanupRequest(**COMMON)
FAILED = FailedAnswer(
    failure=Failure(stage="load", reason_code="failed", exit_code=2, message="No such file.")
)


def cleaned(environment: str = "pr_7") -> CleanupDocument:
    return CleanupDocument(
        environment=environment,
        existed=True,
        result="removed",
        state_record_removed=True,
        seconds=1.5,
        versions=VERSIONS,
    )


def applied(environment: str = "pr_7", **fields: Any) -> ApplyDocument:
    given = {
        "plan_id": PLAN,
        "result": "applied",
        "seconds": 1.0,
        "timings": {"plan": 0.5},
    } | fields
    return ApplyDocument(environment=environment, versions=VERSIONS, **given)


def reviewed(environment: str = "pr_7", **fields: Any) -> ReviewFacts:
    checks = Checks(
        lint=LintCheck(status="off"),
        tests=TestsCheck(status="none"),
        audits=AuditsCheck(status="not_run"),
        table_diff=TableDiffCheck(status="not_run"),
    )
    given: dict[str, Any] = {
        "project": Project(paths=["."], gateway=None, dialect=None, models=0),
        "baseline": "state",
        "identity": None,
        "prod_plan": None,
        "checks": checks,
        "cost": Cost(intervals=0, batches=0, tables_rebuilt=0, basis="none"),
        "lineage": Lineage(),
        "timings": {},
    }
    lists = ("changes", "backfill", "work", "restatements", "statements", "findings", "stages")
    given |= {name: [] for name in lists} | fields
    return ReviewFacts(environment=environment, versions=VERSIONS, **given)


def identity(environment: str) -> PlanIdentity:
    return PlanIdentity(
        environment=environment,
        gateway="g",
        suffix_target="schema",
        state_schema_version=1,
        flags=PlanFlags(),
        window=Window(start=None, end=None, execution_time="2026-01-01T00:00:00Z"),
        snapshots=[],
        removed=[],
        restatements=[],
        statements=[],
    )


def raw(document: Contract) -> bytes:
    return document.to_json().encode()


@pytest.mark.parametrize(
    ("ask", "document"),
    [
        (REVIEW, reviewed()),
        (REVIEW, reviewed(identity=identity("pr_7"))),
        (APPLY, applied()),
        (APPLY, applied(result="refused", plan_id="cd" * 32)),
        # Given in short, and there is no plan any more that would have the rest of it.
        (APPLY, applied(plan_id=None, result="nothing_to_apply")),
        (WHOLE_APPLY, applied(plan_id=PLAN, result="nothing_to_apply")),
        (PROBE, applied(result="probed")),
        (PROBE, applied(result="nothing_to_apply")),
        (CLEANUP, cleaned()),
        *((ask, FAILED) for ask in (REVIEW, APPLY, CLEANUP)),
    ],
)
def test_read_answer__what_was_asked(ask: Any, document: Contract) -> None:
    assert read_answer_of_sandboxed_worker(raw(document), ask) == document


@pytest.mark.parametrize(
    ("ask", "document", "why"),
    [
        (REVIEW, reviewed("pr_8"), "another environment"),
        (REVIEW, reviewed("prod"), "another environment"),
        (REVIEW, reviewed(identity=identity("pr_8")), "plan is for another environment"),
        (REVIEW, cleaned(), "about a cleanup, not a review"),
        (APPLY, reviewed(), "about a review, not a apply"),
        (APPLY, applied("pr_8"), "another environment"),
        (APPLY, applied(plan_id="cd" * 32), "another plan"),
        (WHOLE_APPLY, applied(plan_id=None, result="nothing_to_apply"), "another plan"),
        (APPLY, applied(plan_id=None), "another plan"),
        (APPLY, applied(result="probed"), "it says probed, which was not asked for"),
        (PROBE, applied(), "it says applied, which was not asked for"),
        (PROBE, applied(result="probed", plan_id="cd" * 32), "another plan"),
        (CLEANUP, cleaned("pr_70"), "another environment"),
        (REVIEW.model_copy(update={"baseline": "base-branch"}), reviewed(), "another baseline"),
        (
            REVIEW,
            FAILED.model_copy(
                update={"failure": FAILED.failure.model_copy(update={"exit_code": 77})}
            ),
            "exit code",
        ),
    ],
)
def test_read_answer__about_something_else(ask: Any, document: Contract, why: str) -> None:
    with pytest.raises(SandboxedAnswerRefusedError, match=why):
        read_answer_of_sandboxed_worker(raw(document), ask)


def _changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
    document = json.loads(raw(cleaned()))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (b"", "not JSON"),
        (b"null", "contract"),
        (b"[]", "contract"),
        (b"{}", "contract"),
        (raw(cleaned()) + raw(cleaned()), "not JSON"),
        (raw(cleaned())[:-1], "not JSON"),
        (b"\xff\xfe" + raw(cleaned()), "not JSON"),
        (raw(cleaned()).replace(b"1.5", b"NaN"), "number that is none"),
        (raw(cleaned()).replace(b"1.5", b"-Infinity"), "number that is none"),
        (raw(cleaned()).replace(b"1.5", b"1e999"), "contract"),
        (raw(cleaned()).replace(b"1.5", b"-1"), "contract"),
        (raw(cleaned()).replace(b"1.5", b'"1.5"'), "contract"),
        (raw(cleaned()).replace(b"1.5", b"1" * 5000), "number without end"),
        (raw(cleaned()).replace(b"1.5", b"[" * 100_000), "nested too deeply"),
        (raw(cleaned()).replace(b"1.5", b'{"a":' * 100_000), "nested too deeply"),
        (raw(cleaned()).replace(b'{"schema', b'{"environment":"prod","schema', 1), "key twice"),
        (_changed(lambda it: it.update(head_sha="0" * 40)), "contract"),
        (_changed(lambda it: it.update(schema_version=2)), "contract"),
        (_changed(lambda it: it.update(activity="destroy")), "contract"),
        (_changed(lambda it: it.update(result="fine")), "contract"),
        (_changed(lambda it: it.update(views_dropped=["x" * 1001])), "contract"),
        (_changed(lambda it: it.update(timings={"a": -1})), "contract"),
        (_changed(lambda it: it.update(leftovers=[{}] * 250_001)), "too many members"),
        (b"[" + b"0," * 4_000_001 + b"0]", "too many members"),
    ],
)
def test_read_answer__forged(forged: bytes, why: str) -> None:
    with pytest.raises(SandboxedAnswerRefusedError, match=why):
        read_answer_of_sandboxed_worker(forged, CLEANUP)


@pytest.mark.parametrize("key", ["::add-mask::x", "<img src=x>", "ghs_" + "a1B2" * 9])
def test_read_answer__the_refusal_shows_nothing_of_it(key: str) -> None:
    with pytest.raises(SandboxedAnswerRefusedError) as refused:
        read_answer_of_sandboxed_worker(
            _changed(lambda it: it.update({key: key, "result": key})), CLEANUP
        )
    assert key not in str(refused.value)


# --- fuzzing --------------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["pr_7", "pr_8", "prod", "removed", "cleanup", "apply", "review", PLAN]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [*CleanupDocument.model_fields, "head_sha", "pr_number", "extra", ""] + [
    "environment"
] * 10
edits = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "twice"]), st.sampled_from(FIELDS), anything),
    max_size=4,
)


def forge(changes: list[tuple[str, str, Any]]) -> bytes:
    document, doubled = json.loads(raw(cleaned())), []
    for kind, name, value in changes:
        if kind == "set":
            document[name] = value
        elif kind == "drop":
            document.pop(name, None)
        elif name in document:
            doubled.append(f"{json.dumps(name)}:{json.dumps(value)}")
    body = json.dumps(document)[1:-1]
    return ("{" + ",".join([*doubled, *([body] if body else [])]) + "}").encode("utf-8", "replace")


def is_ours_or_refused(read: Callable[[bytes], Any], text: bytes) -> bool:
    """Believed is only what says the same to every reader, about this environment."""
    try:
        answer = read(text)
    except SandboxedAnswerRefusedError:
        return True
    if isinstance(answer, FailedAnswer):
        return True

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in pairs}) == len(pairs)
        return dict(pairs)

    try:
        plain = json.loads(text, object_pairs_hook=once)
    except AssertionError:
        return False
    filled = CleanupDocument.model_validate_json(json.dumps(plain))
    return answer.environment == "pr_7" == plain["environment"] and answer == filled


@fuzz(10_000)
@given(
    st.one_of(
        edits.map(forge), st.binary(max_size=50), anything.map(lambda it: json.dumps(it).encode())
    )
)
def test_read_answer__any_bytes(text: bytes) -> None:
    assert is_ours_or_refused(lambda it: read_answer_of_sandboxed_worker(it, CLEANUP), text)


def without_json_check(text: bytes) -> Any:
    answer = ANSWER.validate_json(text)
    check_subject_of_sandboxed_answer(answer, CLEANUP)
    return answer


def without_subject_check(text: bytes) -> Any:
    check_json_of_sandboxed_worker(text)
    return ANSWER.validate_json(text)


@pytest.mark.parametrize("mutant", [without_json_check, without_subject_check])
def test_mutation__a_reader_without_one_of_its_checks_is_caught(
    mutant: Callable[[bytes], Any],
) -> None:
    def fails(text: bytes) -> bool:
        try:
            return not is_ours_or_refused(mutant, text)
        except ValueError:  # refused, in pydantic's words
            return False

    assert caught(edits.map(forge), fails)


def test_mutation__a_reader_without_a_schema_is_caught() -> None:
    def lenient(text: bytes) -> Any:
        document = json.loads(text)
        return ANSWER.validate_json(
            json.dumps({**json.loads(raw(cleaned())), "environment": document.get("environment")})
        )

    def fails(text: bytes) -> bool:
        try:
            return not is_ours_or_refused(lenient, text)
        except (ValueError, AttributeError, KeyError):
            return True

    assert caught(edits.map(forge), fails)
