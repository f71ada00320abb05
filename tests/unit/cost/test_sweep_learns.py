"""A nightly sweep reads event logs where an input names them; what goes wrong is a warning."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.github.port import PullState
from ci_bot.bot.handlers.sweep import SweepHandler
from ci_bot.errors import EXIT_DONE, BotError, WorkerFailed
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import LearnDocument
from ci_bot.protocol.messages import LearnRequest
from tests.publishing import NOON, RUNNER, Memory, context_of, machine_at, publisher_of
from tests.unit.cost.test_told import learned
from tests.unit.worker_client.test_sweep_activity import Worker


@dataclass
class Learning(Worker):
    """A worker that also reads logs."""

    told: LearnDocument | Failure | BotError | None = None
    learning: list[LearnRequest] = field(default_factory=list)

    def request_learn(self, ask: LearnRequest) -> Any:
        self.learning.append(ask)
        if isinstance(self.told, BotError):
            raise self.told
        return self.told


def swept(worker: Learning, event_logs: str | None) -> tuple[int, str]:
    """The exit code of a sweep that finds nothing to remove, and what it printed."""
    machine = machine_at(NOON)
    settings = ActionSettings(inputs=ActionInputs(event_logs=event_logs), runner=RUNNER)
    made = publisher_of(Memory(), settings=settings, machine=machine)
    code = SweepHandler().run(activities.Sweep(), context_of(made, Nobody(), worker))
    assert isinstance(machine.out, io.StringIO)
    return code, machine.out.getvalue()


class Nobody:
    """A GitHub that is asked for no pull request."""

    def pull_states(self, numbers: Collection[int]) -> dict[int, PullState]:
        return {}


def test_sweep__without_the_input_reads_no_logs() -> None:
    worker = Learning([])
    code, printed = swept(worker, None)
    assert (code, worker.learning) == (EXIT_DONE, [])
    assert "vent log" not in printed


def test_sweep__reads_the_logs_and_says_what_it_learned() -> None:
    worker = Learning([], told=learned(logs=3, read=2, writes=40, tables=3, foreign=1))
    code, printed = swept(worker, "/logs")
    assert [ask.event_logs for ask in worker.learning] == ["/logs"]
    assert code == EXIT_DONE
    assert "::notice::Event logs: 2 of 3 were new and are about 40 writes" in printed


@pytest.mark.parametrize(
    "told",
    [
        Failure(stage="learn", reason_code="no_event_logs", exit_code=2, message="not there"),
        WorkerFailed("not there"),
    ],
)
def test_sweep__goes_on_without_the_logs(told: Any) -> None:
    code, printed = swept(Learning([], told=told), "/logs")
    assert code == EXIT_DONE
    assert "::warning::Nothing was learned from the event logs: not there" in printed
