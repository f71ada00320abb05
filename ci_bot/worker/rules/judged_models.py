"""The budget of execution in a review, and its verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ci_bot.worker.execution import DATA_SETS, SECONDS_FOR_A_MODEL, ExecutionVerdict

if TYPE_CHECKING:
    from ci_bot.worker.rules.source_tables import SourceTables

SECONDS_FOR_A_REVIEW = 20.0
# If less time is left, no model is run any more.
_LEAST_SECONDS = 0.2
# Counts of models and not seconds, so that a report is the same each time. The first models get all
# data sets, which is enough for most reviews. The next ones get fewer, and the rest none.
_FIRST_MODELS, _MOST_MODELS = 4, 30
_FEWER_DATA_SETS = 15


@dataclass
class JudgedModels:
    """The verdicts of a review, by the model's fully qualified name; each model is run once.

    Attributes:
        seconds: time that is left for all models.
        seconds_for_a_model: the most time for one model.
        clock: seconds of processor time.
        sources: known columns of the tables that queries read; made when the first model is run.
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
            judge: runs the model; its arguments are the most seconds and the number of data sets.
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
