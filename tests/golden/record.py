"""Records the documents that the goldens are rendered from: what the real worker says of real projects.

    python -m tests.golden.record                 all of them; some need Spark and take ten minutes
    python -m tests.golden.record without-spark   those that need none
    python -m tests.golden.record NAME ...        some of them

Afterwards `python -m tests.golden.samples`, and read the git diff. What a recording keeps of a
document is said in `stable`. Those that need no Spark are recorded again by `test_recordings`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ci_bot.bot.cli.demo_story import PROD_END, DemoLayout
from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.host import make_process_machine
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Contract
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import Progress
from ci_bot.protocol.review_report import Report
from tests.golden import pull_requests
from tests.golden.pull_requests import ENVIRONMENT, Change, Repository
from tests.golden.stable import stable
from tests.worker import Client

RECORDED = Path(__file__).parent / "recorded"
# The moment at which everything is planned: the end of the flights' year.
NOW = "2014-01-01T00:00:00Z"

WITHOUT_SPARK: dict[str, Callable[[], Change]] = {
    "base_branch": pull_requests.small_change,
    "destructive_change": pull_requests.destructive_change,
    "forward_only_reader": pull_requests.forward_only_reader,
    "leaked_key": pull_requests.leaked_key_and_dropped_column,
    "refused_plan": pull_requests.refused_plan,
    "failed_plan": pull_requests.failed_plan,
    "base_broken": pull_requests.base_broken,
    "no_changes": pull_requests.no_changes,
    "wide_change": pull_requests.wide_change,
}
ON_SPARK: dict[str, type[Contract]] = {
    "small_change": Report,
    "other_plan": Report,
    "progress": Progress,
    "applied": ApplyDocument,
    "closed": CleanupDocument,
    "cleanup_failed": CleanupDocument,
    "failing_audit": Report,
    "apply_failed": ApplyDocument,
}
KINDS: dict[str, type[Contract]] = dict.fromkeys(WITHOUT_SPARK, Report) | ON_SPARK


def against_base(change: Change, home: Path) -> str:
    """The recorded report of a review against the base branch. No Spark, no state, no data."""
    repository = Repository(home / "checkout")
    repository.commit(change.base, "main")
    commits = repository.push(change.head)
    report = Client(repository.root, timeout_minutes=60).review(
        ENVIRONMENT, commits=commits, baseline="base-branch", execution_time=NOW, planned_at=NOW
    )
    return stable(report, home)


class Life:
    """Pull requests on real Spark, with prod built from real flights; each step starts a worker."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._layout = DemoLayout(home)
        self._layout.create_layout()
        machine = make_process_machine()
        self._machine = replace(
            machine, environ={**machine.environ, **self._layout.list_variables()}
        )
        self._repository = Repository(self._layout.project_directory)
        self._repository.commit(pull_requests.project_files(), "main")

    def recordings(self) -> Iterator[tuple[str, str]]:
        """Names and recorded documents, in the order in which they come about."""
        self._run(
            "ci_bot.worker.demo_prod", "--data", str(self._layout.data_directory), "--end", PROD_END
        )
        client = Client(self._layout.project_directory, around=self._machine, timeout_minutes=60)
        report = self._review(client, self._repository.push(pull_requests.small_change().head))
        yield "small_change", self._stable(report)
        applied = self._apply(client, report)
        steps = [step for step in client.heard.progress if step.phase == "apply" and step.total]
        yield "progress", self._stable(steps[len(steps) // 2])
        yield "applied", self._stable(applied)
        yield "closed", self._stable(client.cleanup(ENVIRONMENT, merged=True))
        self._apply(client, report)
        self._sql(f"CREATE TABLE marts__{ENVIRONMENT}.scratch_of_maria AS SELECT 1 AS one")
        yield "cleanup_failed", self._stable(client.cleanup(ENVIRONMENT, merged=True))
        self._sql(f"DROP TABLE marts__{ENVIRONMENT}.scratch_of_maria")
        client.cleanup(ENVIRONMENT, merged=True)
        failing = self._review(client, self._repository.push(pull_requests.failing_audit().head))
        yield "failing_audit", self._stable(failing)
        yield "apply_failed", self._stable(self._apply(client, failing))
        self._repository.push(pull_requests.small_change().head)
        self._repository.commit(pull_requests.on_another_base(), "Somebody else's change")
        yield "other_plan", self._stable(self._review(client, self._repository.merged()))

    def _review(self, client: Client, commits: RequestedReviewCommits) -> Report:
        return client.review(ENVIRONMENT, commits=commits, execution_time=NOW, planned_at=NOW)

    def _apply(self, client: Client, report: Report) -> ApplyDocument:
        assert report.identity is not None
        return client.apply(
            ENVIRONMENT,
            plan_id=report.plan_id,
            reviewed=report.identity,
            window=report.identity.window,
        )

    def _sql(self, statement: str) -> None:
        self._run("tests.projects.spark_sql", statement)

    def _run(self, module: str, *arguments: str) -> None:
        """A module with the project as its first argument, in a process with a JVM of its own."""
        subprocess.run(
            [sys.executable, "-m", module, str(self._layout.project_directory), *arguments],
            env=dict(self._machine.environ),
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _stable(self, document: Contract) -> str:
        return stable(document, self._home)


def read(name: str) -> Contract:
    """What is recorded under this name."""
    content = (RECORDED / f"{name}.json").read_text("utf-8")
    return KINDS[name].model_validate_json(content)


def main(names: Sequence[str]) -> int:
    """Records what is named, or all; what comes from one life of a pull request comes together."""
    names = [*WITHOUT_SPARK] if list(names) == ["without-spark"] else names
    unknown = set(names) - set(KINDS)
    if unknown:
        sys.stderr.write(f"{', '.join(sorted(unknown))}: only {', '.join(KINDS)}\n")
        return 2
    wanted = set(names or KINDS)
    RECORDED.mkdir(exist_ok=True)
    for name in sorted(wanted & set(WITHOUT_SPARK)):
        with tempfile.TemporaryDirectory(prefix="golden-") as home:
            _write(name, against_base(WITHOUT_SPARK[name](), Path(home)))
    if wanted & set(ON_SPARK):
        with tempfile.TemporaryDirectory(prefix="golden-") as home:
            for name, text in Life(Path(home)).recordings():
                _write(name, text)
    return 0


def _write(name: str, text: str) -> None:
    (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
