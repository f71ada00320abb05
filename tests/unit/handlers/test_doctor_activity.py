"""`mode: doctor`: what is missing is said in the summary, also where the worker cannot begin."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from ci_bot.bot.actions.activities import Doctor
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.actions.workflow_commands import ActionStepOutputs, ActionStepSummary
from ci_bot.bot.handlers.doctor import DoctorHandler, list_variable_checks_of_doctor
from ci_bot.bot.handlers.handler import HandlerContext
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.base import Versions
from ci_bot.protocol.messages import DoctorDocument, DoctorRequest, Workplace
from ci_bot.protocol.plan import ProjectCheck
from ci_bot.redaction import Redactor
from tests.publishing import NOON, RUNNER, Memory, machine_at, publisher_of

SHA = "c" * 40
FINE = ProjectCheck(name="state", status="ok", message="postgres, schema 102")
BAD = ProjectCheck(name="Spark", status="fail", message="no | answer", fix="Open the port.")


@dataclass
class GitHub(Memory):
    required: tuple[str, ...] = ("Review the plan",)

    def pulls_for_sha(self, sha: str, *, head: str | None = None) -> list[Any]:
        self._call("pulls_for_sha")
        assert sha == SHA
        return []

    def list_required_checks(self, branch: str) -> list[str]:
        self._call(f"rules of {branch}")
        return list(self.required)


@dataclass
class Worker:
    checks: list[ProjectCheck]
    head: str = SHA
    asked: list[DoctorRequest] = field(default_factory=list)
    project_directories: list[str] = field(default_factory=lambda: ["."])
    gateway: str | None = None
    redactor: Redactor = field(default_factory=Redactor)
    workplace: Workplace = field(
        default_factory=lambda: Workplace(repository="/r", cache_dir="/c", scratch_dir="/s")
    )
    make_request = WorkerClient.make_request

    @property
    def git(self) -> Worker:
        return self

    def read_head(self) -> str:
        return self.head

    def request_doctor(self, request: DoctorRequest) -> DoctorDocument:
        self.asked.append(request)
        return DoctorDocument(
            checks=self.checks,
            configured=True,
            seconds=1.0,
            versions=Versions(ci_bot="0", python="3.11"),
        )


class Case:
    def __init__(
        self, tmp_path: Path, worker: Worker, github: GitHub | None = None, **environ: str
    ) -> None:
        machine = replace(machine_at(NOON), environ=environ)
        settings = ActionSettings(
            inputs=ActionInputs(worker_env="STATE_*, TOKEN"), runner=replace(RUNNER, sha=SHA)
        )
        publisher = publisher_of(github or GitHub(), settings=settings, machine=machine)
        self.outputs, self.summary = tmp_path / "outputs", tmp_path / "summary"
        publisher.outputs = ActionStepOutputs(self.outputs, delimiter=machine.token, warn=self.fail)
        publisher.summary = ActionStepSummary(self.summary, warn=self.fail)
        self.context = HandlerContext(settings, publisher, github, worker)
        self.machine = machine

    @staticmethod
    def fail(text: str) -> None:
        raise AssertionError(text)

    def run(self) -> int:
        return DoctorHandler().run(Doctor(branch="main"), self.context)

    @property
    def text(self) -> str:
        return self.summary.read_text("utf-8")

    @property
    def log(self) -> str:
        return cast(io.StringIO, self.machine.out).getvalue()


def test_doctor__of_a_job_that_has_all_says_so(tmp_path: Path) -> None:
    case = Case(tmp_path, Worker([FINE]), GitHub(), STATE_HOST="db", TOKEN="t")
    assert case.run() == 0
    assert "## ✅ Doctor: nothing is missing" in case.text
    assert "`main` requires `Review the plan`" in case.text
    assert "comments come from `github-actions[bot]`;" in case.text
    assert "nothing_missing" in case.outputs.read_text("utf-8")
    assert case.log == ""


def test_doctor__what_fails_comes_first_and_is_an_annotation(tmp_path: Path) -> None:
    case = Case(tmp_path, Worker([FINE, BAD]), GitHub(required=()), STATE_HOST="", TOKEN="t")
    assert case.run() == 1
    assert "## ❌ Doctor: 1 thing to fix, 2 to check" in case.text
    rows = [line for line in case.text.splitlines() if line.startswith("| ")][1:]
    assert rows[0].startswith("| Spark | ❌ | no ")
    assert rows[0].endswith(" | Open the port. |")
    assert "`STATE_HOST` is empty" in case.text
    assert "no ruleset of `main` requires a check, so a No-Go can be merged" in case.text
    assert "::error" in case.log
    assert case.log.count("::warning") == 2
    assert '"failing":["Spark"]' in case.outputs.read_text("utf-8").replace(" ", "")


def test_doctor__whose_worker_cannot_begin_says_that_and_asks_github(tmp_path: Path) -> None:
    github = GitHub()
    case = Case(tmp_path, Worker([]), github, STATE_HOST="db", TOKEN="t")
    error = BadInput("The requirements cannot be installed.", hint="Pin them.")
    assert DoctorHandler().report_failure(error, Doctor(branch="main"), case.context) == 2
    assert "| worker | ❌ | The requirements cannot be installed. | Pin them. |" in case.text
    assert github.calls == ["my_login", "pulls_for_sha", "rules of main"]


@pytest.mark.parametrize("verb", ["my_login", "pulls_for_sha"])
def test_doctor__a_token_without_rights_is_a_finding(tmp_path: Path, verb: str) -> None:
    error = RequestRefused("The token lacks `pull-requests: read`.", hint="Add it.")
    github = GitHub(failing={verb: error})
    case = Case(tmp_path, Worker([FINE]), github, STATE_HOST="db", TOKEN="t")
    assert case.run() == 1
    assert "| token | ❌ | The token lacks `pull-requests: read`. | Add it. |" in case.text


def test_doctor__rules_that_cannot_be_read_are_not_called_missing(tmp_path: Path) -> None:
    github = GitHub(failing={"rules of main": BotError("GitHub does not answer.")})
    case = Case(tmp_path, Worker([FINE]), github, STATE_HOST="db", TOKEN="t")
    assert case.run() == 0
    assert "rules of `main` could not be read: GitHub does not answer." in case.text


def test_doctor__without_a_token_is_a_finding(tmp_path: Path) -> None:
    case = Case(tmp_path, Worker([FINE]), None, STATE_HOST="db", TOKEN="t")
    assert case.run() == 1
    assert "the input `github-token` is empty" in case.text


def test_doctor__loads_no_commit_but_that_of_its_workflow(tmp_path: Path) -> None:
    worker = Worker([FINE], head="d" * 40)
    case = Case(tmp_path, worker, GitHub())
    with pytest.raises(RequestRefused) as caught:
        case.run()
    assert caught.value.reason_code == "other_checkout"
    assert worker.asked == [], "nothing was loaded"
    with pytest.raises(RequestRefused):
        DoctorHandler().report_failure(caught.value, Doctor(), case.context)


@pytest.mark.parametrize(
    ("worker_env", "environ", "told"),
    [
        ("", {}, "ok: `worker-env` is empty: the project sees no variable of this job"),
        ("A", {"A": "1"}, "ok: everything in `worker-env` has a value"),
        ("A B", {"A": "1"}, "warn: `B` is not set in this job"),
        ("X_*", {}, "warn: `X_*` is not set in this job"),
        ("X_*", {"X_A": "", "X_B": "1"}, "warn: `X_A` is empty"),
        ("A B", {"A": "", "B": ""}, "warn: `A`, `B` are empty"),
        ("no-name!", {}, "fail: Input `worker-env` cannot be used"),
    ],
)
def test_variables__say_what_has_no_value(
    worker_env: str, environ: dict[str, str], told: str
) -> None:
    (check,) = list_variable_checks_of_doctor(worker_env, environ)
    assert f"{check.status}: {check.message}".startswith(told)
