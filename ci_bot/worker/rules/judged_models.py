"""The budget that execution has in a review, and what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ci_bot.worker.execution import DATA_SETS, SECONDS_FOR_A_MODEL, ExecutionVerdict

if TYPE_CHECKING:
    from ci_bot.worker.rules.source_tables import SourceTables

SECONDS_FOR_A_REVIEW = 20.0
# With less left nothing is begun.
_LEAST_SECONDS = 0.2
# Numbers and not times, so that a report is the same each time: the first models get all data
# sets, as in most reviews, the next ones fewer, and those of a very wide change none.
_FIRST_MODELS, _MOST_MODELS = 4, 30
_FEWER_DATA_SETS = 15


@dataclass
class JudgedModels:
    """The verdicts of a review, by the model's fully qualified name; each model is run once.

    Attributes:
        seconds: that are left for all models.
        seconds_for_a_model: that one has at most.
        clock: seconds of processor time.
        sources: what is known of the tables that queries read; made when a model is run first.
    """

    seconds: float = SECONDS_FOR_A_REVIEW
    seconds_for_a_model: float = SECONDS_FOR_A_MODEL
    clock: Callable[[], float] = time.thread_time
    found: dict[str, ExecutionVerdict] = field(default_factory=dict)
    sources: SourceTables | None = None

    def judge_once(
        self, name: str, judge: Callable[[float, int], ExecutionVerdict]
    ) -> ExecutionVerdict:
        """The verdict on a model.

        Args:
            judge: runs it, in at most so many seconds, on so many data sets.
        """
        if name not in self.found:
            if self.seconds < _LEAST_SECONDS or len(self.found) >= _MOST_MODELS:
                reason = "more time than a review has for it"
                self.found[name] = ExecutionVerdict("not_tried", reason=reason)
            else:
                started = self.clock()
                data_sets = DATA_SETS if len(self.found) < _FIRST_MODELS else _FEWER_DATA_SETS
                seconds = min(self.seconds, self.seconds_for_a_model)
                self.found[name] = judge(seconds, data_sets)
                self.seconds -= self.clock() - started
        return self.found[name]
