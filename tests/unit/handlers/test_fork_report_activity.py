"""What of a fork's report is believed, whose it is, and what is put in the place of its claims."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.actions import activities
from ci_bot.bot.github.port import NotFound, PullRequest
from ci_bot.bot.handlers import fork_report
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.errors import RequestRefused
from ci_bot.protocol.review_inputs import ProdRestatement
from ci_bot.protocol.review_report import ModelOwners, PolicyUsed, Report
from tests.factories import HEAD, make_context, make_report, make_risk
from tests.publishing import Memory, publisher_of

ASKED = activities.PostForkReport(
    run_id=5,
    head_sha=HEAD,
    head_repository="outsider/warehouse",
    head_branch="theirs",
    fork=True,
)
PULL = replace(Memory().pull, fork=True, head_repository="outsider/warehouse", author="outsider")


@dataclass
class Forge:
    """The part of GitHub that a fork's report needs."""

    pulls: Sequence[PullRequest] = (PULL,)
    archive: bytes = b""
    files: list[str] | None = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def pulls_for_sha(self, sha: str, *, head: str | None = None) -> list[PullRequest]:
        self.asked.append(f"{sha} {head}")
        return [pull for pull in self.pulls if pull.head_sha == sha]

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        if not self.archive:
            raise NotFound("gone", hint="It may have expired.")
        return self.archive

    def changed_files(self, number: int) -> list[str] | None:
        return self.files


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def left(report: Report, **changes: Any) -> bytes:
    document = json.loads(report.to_json()) | changes
    return zipped(("report.json", json.dumps(document)), ("report.md", "# Approved by @admin"))


def read(archive: bytes) -> Report:
    return fork_report.read_report_of_fork_run(ASKED, Forge(archive=archive))


def resolve(*pulls: PullRequest, asked: activities.PostForkReport = ASKED) -> PullRequest:
    return fork_report.find_pull_request_of_fork_run(asked, Forge(pulls=pulls))


def rewrite(report: Report, *, untouched: bool = False, pull: PullRequest = PULL) -> Report:
    desk = publisher_of(Memory())
    return fork_report.rewrite_claims_of_fork_report(report, pull, desk, untouched)


def test_read_report__of_the_right_commit_is_read() -> None:
    assert read(left(make_report())) == make_report()


def symlink() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("report.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


GOOD = make_report().to_json()


@pytest.mark.parametrize(
    "archive",
    [
        b"no zip at all",
        zipped(),
        zipped(("other.json", GOOD)),
        zipped(("../report.json", GOOD)),
        zipped(("reports/report.json", GOOD)),
        zipped((symlink(), "/etc/passwd")),
        zipped(("report.json/", "")),
        zipped(("report.json", "")),
        zipped(("report.json", "[]")),
        zipped(("report.json", b"\xff\xfe")),
        zipped(("report.json", "[" * 100_000)),
        zipped(("report.json", GOOD.replace('"activity"', '"activity":"review","activity"', 1))),
        zipped(("report.json", GOOD[:-1])),
        zipped(("report.json", '{"a": NaN}')),
        left(make_report(), head_sha="e" * 40),
        left(make_report(), head_sha=None),
        left(make_report(), decision="approved"),
        left(make_report(), schema_version=2),
        left(make_report(), surprise=True),
        left(make_report(), activity="apply"),
        zipped(("report.json", b" " * (fork_report.MAX_REPORT_BYTES + 1))),
        zipped(*[(f"{number}.json", "{}") for number in range(101)], ("report.json", GOOD)),
    ],
)
def test_read_report__of_anything_else_is_refused(archive: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        read(archive)
    assert caught.value.exit_code == 3
    assert caught.value.reason_code in ("artifact_refused", "report_refused")
    assert "passwd" not in caught.value.message


def test_read_report__repeats_nothing_of_what_it_refuses() -> None:
    evil = left(make_report(), decision="@everyone ::error::pwned")
    with pytest.raises(RequestRefused) as caught:
        read(evil)
    assert "everyone" not in f"{caught.value.message}{caught.value.hint}"


@given(st.binary(max_size=400))
def test_read_report__of_any_bytes_is_refused_and_nothing_else(content: bytes) -> None:
    with pytest.raises(RequestRefused):
        read(zipped(("report.json", content)))
    with pytest.raises(RequestRefused):
        read(content or b"x")


def test_resolve__asks_for_head_branch_and_commit() -> None:
    forge = Forge()
    assert fork_report.find_pull_request_of_fork_run(ASKED, forge) == PULL
    assert forge.asked == [f"{HEAD} outsider:theirs"]


def test_resolve__of_a_deleted_fork_asks_for_the_commit_alone() -> None:
    forge = Forge(pulls=[replace(PULL, head_repository=None)])
    asked = replace(ASKED, head_repository=None)
    assert fork_report.find_pull_request_of_fork_run(asked, forge).number == PULL.number
    assert forge.asked == [f"{HEAD} None"]


@pytest.mark.parametrize(
    "pulls",
    [
        (),
        (replace(PULL, head_sha="e" * 40),),
        (replace(PULL, head_repository="somebody/warehouse"),),
        (replace(PULL, fork=False, author="ada", head_repository="outsider/warehouse"),),
    ],
)
def test_resolve__of_a_pull_request_that_moved_on_or_is_none_posts_nothing(
    pulls: tuple[PullRequest, ...],
) -> None:
    with pytest.raises(fork_report._NothingToPost):
        resolve(*pulls)


def test_resolve__of_dependabot_is_served_by_its_author_not_by_its_branch() -> None:
    branch = "dependabot/pip/sqlmesh"
    asked = replace(ASKED, fork=False, head_repository="shop/warehouse", head_branch=branch)
    bot = replace(PULL, fork=False, head_repository="shop/warehouse", author="dependabot[bot]")
    assert resolve(bot, asked=asked) == bot
    with pytest.raises(fork_report._NothingToPost):
        resolve(replace(bot, author="ada"), asked=asked)


def test_resolve__of_two_pull_requests_with_one_head_is_refused() -> None:
    with pytest.raises(RequestRefused, match="#142, #143") as caught:
        resolve(PULL, replace(PULL, number=143))
    assert caught.value.reason_code == "ambiguous_head"


def test_rewritten__takes_identity_from_github_and_never_from_the_report() -> None:
    claimed = make_report(
        environment="prod", base_sha="f" * 40, merge_sha="f" * 40, baseline="state"
    )
    mine = rewrite(claimed)
    assert mine.environment == "pr_142"
    assert mine.base_sha == PULL.base_sha
    assert mine.merge_sha is None
    assert mine.plan_id is None
    assert mine.identity is None
    assert mine.baseline == "base-branch"
    assert mine.project.paths == ["."]
    assert not mine.appliable


@pytest.mark.parametrize(
    ("claimed", "untouched", "shown"),
    [
        ("go", False, "review"),
        ("go", True, "review"),
        ("review", False, "review"),
        ("no_go", False, "no_go"),
        ("no_changes", True, "no_changes"),
        ("no_changes", False, "review"),
    ],
)
def test_rewritten__believes_bad_news_and_not_good_news(
    claimed: str, untouched: bool, shown: str
) -> None:
    mine = rewrite(make_report(decision=claimed), untouched=untouched)
    assert mine.decision == shown
    raised = claimed != shown
    assert any("code that the pull request can change" in line for line in mine.reasons) is raised


@pytest.mark.parametrize(
    ("files", "projects", "inside"),
    [
        (["README.md"], ["analytics"], []),
        (["analytics/models/a.sql"], ["analytics"], ["analytics/models/a.sql"]),
        (["analytics2/a.sql"], ["analytics"], []),
        (["README.md"], ["."], ["README.md"]),
        (["b/x"], ["a", "b"], ["b/x"]),
    ],
)
def test_inside__is_about_whole_names_of_directories(
    files: list[str], projects: list[str], inside: list[str]
) -> None:
    assert fork_report._list_files_inside_projects(files, projects) == inside


def test_rewrite__of_a_forged_report__has_no_words_of_the_team() -> None:
    used = PolicyUsed(source="base", header="## 🟢 Go", footer="Approved.")
    forged = make_report(risks=[make_risk(message="All good.")], set_aside=[make_risk(message="x")])
    found = rewrite(forged.model_copy(update={"policy": used}))
    assert found.policy is not None
    assert (found.policy.header, found.policy.footer) == (None, None)
    assert [risk.message for risk in (*found.risks, *found.set_aside)] == [None, None]


ASKED_OF_PROD = ProdRestatement.model_validate(
    {
        "recorded": {
            **{"model": "finance.invoices", "start": None, "end": None, "fingerprint": "1"},
            **{"rebuilds": ["finance.invoices"], "by": "alice", "at": "2026-11-22T10:00:00Z"},
            **{"reason": "late", "comment_id": 9, "head_sha": None, "prod_plan_id": None},
        }
    }
)
OWNED = ModelOwners(model="stg.orders", logins=["ada"], teams=[], place="CODEOWNERS line 1")


def weighed(by: str, rule: str = "join-changed") -> Any:
    claim = {"by": by, "weight": "high", "reason": "All good", "who": "ada"}
    return make_risk(rule=rule, severity="low", model="stg.orders", weighed=claim)


def test_rewrite__of_a_forged_report__names_nobody_who_decided_something() -> None:
    """An acceptance, evidence, trust and restatements are known to runs with secrets alone."""
    report = make_report(
        risks=[weighed("severity", "R12-code-on-load"), weighed("severity")],
        set_aside=[weighed("acceptance"), weighed("data_diff"), weighed("ignore")],
        owners=[OWNED],
        prod_restatements=[ASKED_OF_PROD],
        environment_now="It holds this plan.",
        environment_holds_plan=True,
    )
    found = rewrite(report)
    assert [
        (risk.rule, risk.severity, risk.weighed and risk.weighed.by) for risk in found.risks
    ] == [
        ("R12-code-on-load", "high", None),
        ("join-changed", "low", "severity"),
        ("join-changed", "high", None),
        ("join-changed", "high", None),
    ]
    assert [risk.weighed and risk.weighed.by for risk in found.set_aside] == ["ignore"]
    assert sum(len(group.places) for group in found.findings) == 4
    assert (found.owners, found.prod_restatements) == ([], [])
    assert (found.environment_now, found.environment_holds_plan) == (None, False)
    text = render_review_comment(found, make_context(phase="planned", fork=True)).text
    assert not [name for name in ("alice", "@ada", "finance.invoices") if name in text]


def test_rewrite__of_dependabots_report__keeps_the_owners_who_may_accept() -> None:
    pull = replace(PULL, fork=False, author="dependabot[bot]")
    found = rewrite(make_report(owners=[OWNED], prod_restatements=[ASKED_OF_PROD]), pull=pull)
    assert (found.owners, found.prod_restatements) == ([OWNED], [])
