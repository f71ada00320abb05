"""The comment in each of its states, as the bot publishes recorded documents: the files beside this one.

After a wanted change of the templates: `python -m tests.golden.samples`, then read the git diff.
Where the documents themselves change, record them first: `tests.golden.record`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from ci_bot.bot.decision import decide_on_review
from ci_bot.bot.report.model.risk_groups import group_findings
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import Progress
from ci_bot.protocol.plan import Window
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement
from ci_bot.protocol.review_report import ModelOwners, Report, ReviewFacts
from tests.golden.conversation import Conversation
from tests.golden.record import read

HERE = Path(__file__).parent


def report(name: str) -> Report:
    """A recorded report."""
    return cast(Report, read(name))


def _reviewed(name: str) -> Conversation:
    return Conversation(report(name)).review(report(name))


def small_change() -> str:
    """A breaking change of one incremental model, new columns of another, a new model."""
    return _reviewed("small_change").comment


def small_go() -> str:
    """A new column of a table that is built as a whole, and its unit tests: nobody is asked."""
    return _reviewed("failing_audit").comment


def forward_only_reader() -> str:
    """Past numbers change, and one of two readers is forward-only: it keeps the old ones."""
    return _reviewed("forward_only_reader").comment


def leaked_key() -> str:
    """A payment key in the configuration, and a column goes that a view reads."""
    return _reviewed("leaked_key").comment


def refused_plan() -> str:
    """The key again, and SQLMesh refuses to drop a column of a forward-only model."""
    return _reviewed("refused_plan").comment


def large_go() -> str:
    """As `wide_change`, for a team whose limit is above it: a Go, and prod builds much."""
    found = report("wide_change")
    risks = [risk for risk in found.risks if risk.rule != "R06-interval-limit"]
    large = found.model_copy(update={"risks": risks, "decision": "go", "reasons": []})
    return Conversation(large).review(large).comment


def owner_asked() -> str:
    """As `small_change`, in a team that says on GitHub who owns the model."""
    found = report("small_change")
    owner = ModelOwners(
        model="marts.daily_carrier_performance",
        logins=["ada"],
        teams=["octo/network-planning"],
        place=".sqlmesh-review.yaml:3",
    )
    owned = found.model_copy(update={"owners": [owner]})
    return Conversation(owned).review(owned).comment


def restated() -> str:
    """Upstream data has changed and no code: an owner lets prod build ten days again."""
    found = report("no_changes")
    built = {item.model: item for item in report("small_change").work}
    first, last = "2013-12-01T00:00:00Z", "2013-12-11T00:00:00Z"
    whole = built["marts.carrier_scorecard"]
    days = built["marts.daily_carrier_performance"].model_copy(
        update={"start": first, "end": last, "intervals": 10, "batches": 1}
    )
    asked = ProdRestatement(
        recorded=RecordedRestatement(
            model=days.model,
            start=first,
            end=last,
            fingerprint="1",
            rebuilds=[days.model, whole.model],
            by="ada",
            at="2024-02-01T09:30:00Z",
            reason="The airline has sent December again",
            comment_id=11,
            head_sha=None,
            prod_plan_id=None,
        ),
        path="project/models/marts/daily_carrier_performance.sql",
        window=Window(start=first, end=last, execution_time=last),
        work=[days, whole],
        kept=["marts.audited_year"],
        environments=["dev"],
    )
    wanted = found.model_copy(
        update={
            "prod_restatements": [asked],
            "baseline": "state",
            "notes": [],
            "not_appliable_because": "There is nothing to apply.",
        }
    )
    known = {
        name: getattr(wanted, name)
        for name in ReviewFacts.model_fields.keys() & wanted.model_fields_set
    }
    judged = decide_on_review(ReviewFacts(**{**known, "activity": "review", "findings": []}))
    wanted = wanted.model_copy(
        update={
            "decision": judged.decision,
            "reasons": list(judged.reasons),
            "risks": list(judged.risks),
            "findings": group_findings(judged.risks),
        }
    )
    return Conversation(wanted).review(wanted).comment


def fork() -> str:
    """The same pull request from a fork: no secret, no state, and no apply."""
    found = report("base_branch").model_copy(
        update={"not_appliable_because": SENTENCES.fork_never_applied}
    )
    return Conversation(found, fork=True).review(found).comment


def base_branch() -> str:
    """The same pull request, reviewed without a state database."""
    return _reviewed("base_branch").comment


def destructive_change() -> str:
    """A dropped column that others still read, a model that goes, a GRANT."""
    return _reviewed("destructive_change").comment


def wide_change() -> str:
    """Every model of a project changes: more than a comment can hold."""
    return _reviewed("wide_change").comment


def failed_plan() -> str:
    """The project does not load; the reader gets the place, the way out, and the plan before."""
    return _reviewed("small_change").review(report("failed_plan")).comment


def base_broken() -> str:
    """The base branch does not load, and this pull request is not why: nobody is blamed."""
    return _reviewed("base_broken").comment


def no_changes() -> str:
    """A unit test changed; the comment explains why new data is no change."""
    return _reviewed("no_changes").comment


def planning() -> str:
    """A push while an earlier review stands."""
    return _reviewed("small_change").announce("b2c3d4e" + "0" * 33).comment


def applying() -> str:
    """Half way through."""
    own, step = report("small_change"), cast(Progress, read("progress"))
    return _reviewed("small_change").applying(own, step, "applying").comment


def cancelled() -> str:
    """Stopped by a person in the middle of a backfill.

    There is no document: the comment is marked at once, while the worker has its last seconds.
    """
    own = report("small_change")
    return _reviewed("small_change").applying(own, None, "cancelled").comment


def _applied() -> Conversation:
    document = cast(ApplyDocument, read("applied"))
    return _reviewed("small_change").apply(report("small_change"), document)


def applied() -> str:
    """Built, audited and compared; one column differs as it should."""
    return _applied().comment


def apply_failed() -> str:
    """A blocking audit stopped the backfill."""
    document = cast(ApplyDocument, read("apply_failed"))
    return _reviewed("failing_audit").apply(report("failing_audit"), document).comment


def refused() -> str:
    """Somebody else's change was merged after the review, so the plan is another one."""
    return _reviewed("small_change").refuse(report("other_plan")).comment


def closed() -> str:
    """The tombstone after a merge."""
    return _applied().clean_up(cast(CleanupDocument, read("closed"))).comment


def cleanup_failed() -> str:
    """Somebody's own table stands in our schema."""
    return _applied().clean_up(cast(CleanupDocument, read("cleanup_failed"))).comment


SAMPLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        small_change,
        small_go,
        forward_only_reader,
        leaked_key,
        refused_plan,
        base_branch,
        large_go,
        owner_asked,
        restated,
        fork,
        destructive_change,
        wide_change,
        failed_plan,
        base_broken,
        no_changes,
        planning,
        applying,
        applied,
        apply_failed,
        refused,
        cancelled,
        closed,
        cleanup_failed,
    )
}


def write_all() -> None:
    """Writes every sample beside this file."""
    for name, sample in SAMPLES.items():
        (HERE / f"{name}.md").write_text(sample(), encoding="utf-8")


if __name__ == "__main__":
    write_all()
