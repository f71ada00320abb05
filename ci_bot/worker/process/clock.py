"""How long each phase of a run takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Seconds by phase, in the order in which the phases first ran."""

    now: Callable[[], float] = time.perf_counter
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + self.now() - start, 3)
