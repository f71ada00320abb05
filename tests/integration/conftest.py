"""Workers here are forks of one process, but for tests about a worker's start (`cold_worker`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci_bot.bot.sandbox import supervisor
from tests.warm_worker import WarmWorkers


@pytest.fixture(scope="session")
def warm_workers() -> Iterator[WarmWorkers]:
    made = WarmWorkers(supervisor._start_sandboxed_process)
    yield made
    made.end()


@pytest.fixture(autouse=True)
def started_warm(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, warm_workers: WarmWorkers
) -> None:
    if request.node.get_closest_marker("cold_worker") is None:
        monkeypatch.setattr(supervisor, "_start_sandboxed_process", warm_workers.start)
