"""Asking the real worker in its real process, as the bot does, and keeping what it said."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_bot.bot.sandbox.deadline import SandboxCancelToken, SandboxDeadline
from ci_bot.bot.sandbox.launch import make_redactor_for_sandbox
from ci_bot.bot.sandbox.process_tree import read_table_of_sandboxed_processes
from ci_bot.bot.worker_client import apply as applying
from ci_bot.bot.worker_client import cleanup as cleaning
from ci_bot.bot.worker_client import review as reviewing
from ci_bot.bot.worker_client.client import WorkerClient, WorkerClientOptions, WorkListener
from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits, WorkerReviewOptions
from ci_bot.bot.worker_client.session import open_worker_client
from ci_bot.host import Machine, make_process_machine
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import (
    AcceptAnswer,
    AcceptRequest,
    Owner,
    Progress,
    RestateAnswer,
    RestateRequest,
)
from ci_bot.protocol.review_inputs import RecordedRestatement
from ci_bot.protocol.review_report import Acceptance, Report
from tests.projects import Shop
from tests.projects.history import Repository
from tests.shared_jvm import JVM

OWNER = "octo/shop"


@dataclass
class Heard:
    """Progress and log of one request."""

    progress: list[Progress] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def phases(self) -> list[str]:
        return [step.phase for step in self.progress]


class Client:
    """Reviews, applies and cleans up one project through the worker process.

    After a review of a change, `loaded` holds which changed files were opened on load.
    """

    def __init__(
        self,
        root: Path,
        projects: Sequence[str] = (".",),
        around: Machine | None = None,
        **options: Any,
    ) -> None:
        self._around = around or make_process_machine()
        self._options = WorkerClientOptions(
            checkout=root,
            projects=tuple(projects),
            own_machine=self._around.worker_user is None,
            **{"timeout_minutes": 5, **options},
        )
        self.heard = Heard()
        self.patience_seconds: float | None = None
        self.loaded: frozenset[str] | None = None

    def _with(self, action: Any) -> Any:
        cancel = SandboxCancelToken(clock=time.monotonic)
        self.heard = Heard()
        listener = WorkListener(
            on_progress=self.heard.progress.append, on_log=self.heard.log.append
        )
        deadline = (
            None
            if self.patience_seconds is None
            else SandboxDeadline(self.patience_seconds, clock=time.monotonic)
        )
        try:
            with open_worker_client(
                self._options,
                self._around,
                redactor=make_redactor_for_sandbox(
                    self._around.environ, worker_env=self._options.worker_env
                ),
                cancel=cancel,
                listener=listener,
                deadline=deadline,
            ) as bench:
                return action(bench)
        finally:
            cancel.close()
            JVM.settle()

    def review(
        self, environment: str, *, planned_at: str = "2024-02-01T00:00:00Z", **options: Any
    ) -> Report:
        def act(bench: WorkerClient) -> Report:
            wanted = WorkerReviewOptions(
                environment=environment,
                owner=Owner(name=OWNER, pr_number=options.pop("number", None)),
                commits=options.pop("commits", RequestedReviewCommits()),
                **options,
            )
            report = reviewing.request_review_and_judge(bench, wanted, planned_at=planned_at)
            commits = wanted.commits
            if commits.base is not None and commits.head is not None:
                with bench.deadline.extend_for_report():
                    changed = bench.git.changed_files(commits.base, commits.head)
                self.loaded = bench.list_loaded_among([file.path for file in changed])
            return report

        report: Report = self._with(act)
        return report

    def accept(self, acceptance: Acceptance, number: int) -> list[Acceptance]:
        """What the ledger holds for the pull request afterwards."""

        def act(bench: WorkerClient) -> AcceptAnswer | Failure:
            whose = Owner(name=OWNER, pr_number=number)
            return bench.request_accept(
                bench.make_request(AcceptRequest, owner=whose, acceptance=acceptance)
            )

        answer: AcceptAnswer | Failure = self._with(act)
        assert isinstance(answer, AcceptAnswer), answer
        return answer.acceptances

    def restate(self, model: str, item: RecordedRestatement | None, number: int) -> RestateAnswer:
        """What the ledger held for the pull request, and what it holds afterwards."""

        def act(bench: WorkerClient) -> RestateAnswer | Failure:
            whose = Owner(name=OWNER, pr_number=number)
            return bench.request_restate(
                bench.make_request(RestateRequest, owner=whose, model=model, restatement=item)
            )

        answer: RestateAnswer | Failure = self._with(act)
        assert isinstance(answer, RestateAnswer), answer
        return answer

    def apply(self, environment: str, **options: Any) -> ApplyDocument:
        document: ApplyDocument = self._with(
            lambda bench: applying.request_apply_from_worker(
                bench, environment=environment, owner=Owner(name=OWNER), **options
            )
        )
        return document

    def cleanup(self, environment: str, **options: Any) -> CleanupDocument:
        document: CleanupDocument = self._with(
            lambda bench: cleaning.request_cleanup_from_worker(
                bench,
                environment=environment,
                environment_prefix="pr",
                owner=Owner(name=OWNER),
                **options,
            )
        )
        return document


def client(shop: Shop, **options: Any) -> Client:
    """A client of the shop."""
    return Client(shop.project, **options)


def reviewed_on_base(
    repository: Repository,
    base: dict[str, str],
    head: dict[str, str | None],
    *,
    projects: Sequence[str] = (".",),
    **options: Any,
) -> Report:
    """The report on a pull request against its base branch, both of which load."""
    commits = repository.pull_request(base, head)
    report: Report = Client(repository.root, projects, **options).review(
        "pr_7", commits=commits, baseline="base-branch"
    )
    assert (report.failure, report.base_failures) == (None, [])
    assert report.baseline == "base-branch"
    return report


def java_processes() -> set[int]:
    """The JVMs of this machine that are children of nobody but us or our children."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if name == "java" and _descends(int(entry.name), os.getpid()):
                found.add(int(entry.name))
    return found


def alive(pids: list[int]) -> list[int]:
    """Those of the processes that have not ended."""
    table = read_table_of_sandboxed_processes()
    return [pid for pid in pids if pid in table and table[pid].state not in "ZX"]


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return False


PYTHON = sys.executable


def built(document: ApplyDocument) -> dict[str, tuple[int, int]]:
    """Intervals and batches of each table that an apply has built."""
    return {
        model.model: (model.intervals, model.batches)
        for model in document.models
        if model.batches and model.action != "recreate_view"
    }
