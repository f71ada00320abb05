"""Rules on one model as it stands, as classes of SQLMesh's linter.

A project can use them in its own `linter/` directory:

    from ci_bot.worker.rules.models import *  # noqa: F403

and name them in `linter.rules` or `linter.warn_rules`, by their class in lower case.
"""

from __future__ import annotations

from ci_bot.worker.rules.models.base import ModelRule
from ci_bot.worker.rules.models.clock import CurrentTime, RandomValue
from ci_bot.worker.rules.models.contract import (
    ExternalUnregistered,
    ExternalWithoutAudits,
    SelectStar,
    UncastProjection,
)
from ci_bot.worker.rules.models.joining import FanOutTotal, HistoryJoin, NotInNullable
from ci_bot.worker.rules.models.keys import (
    HighCardinalityKey,
    MissingGrain,
    MissingKeyAudit,
    MissingKeyColumn,
    UniqueKeyNoAudit,
)
from ci_bot.worker.rules.models.shape import (
    CrossJoin,
    LimitInModel,
    MissingColumn,
    UnboundedRecursion,
    UnionColumnOrder,
)
from ci_bot.worker.rules.models.size import BatchSizeMissing, HugeFullModel, NoStart
from ci_bot.worker.rules.models.timing import (
    IntervalEdge,
    TimeColumnOutsideInterval,
    TimeFilterMissing,
    TimeFilterWrongColumn,
)
from ci_bot.worker.rules.models.totals import AggregateOverInterval, WindowOverInterval
from ci_bot.worker.rules.models.validity import ScdValidity, UndefinedVariable

MODEL_RULES: tuple[type[ModelRule], ...] = (
    AggregateOverInterval,
    BatchSizeMissing,
    CrossJoin,
    CurrentTime,
    ExternalUnregistered,
    ExternalWithoutAudits,
    FanOutTotal,
    HighCardinalityKey,
    HistoryJoin,
    HugeFullModel,
    IntervalEdge,
    LimitInModel,
    MissingColumn,
    MissingGrain,
    MissingKeyAudit,
    MissingKeyColumn,
    NoStart,
    NotInNullable,
    RandomValue,
    ScdValidity,
    SelectStar,
    TimeColumnOutsideInterval,
    TimeFilterMissing,
    TimeFilterWrongColumn,
    UnboundedRecursion,
    UncastProjection,
    UndefinedVariable,
    UnionColumnOrder,
    UniqueKeyNoAudit,
    WindowOverInterval,
)

__all__ = [
    "MODEL_RULES",
    "AggregateOverInterval",
    "BatchSizeMissing",
    "CrossJoin",
    "CurrentTime",
    "ExternalUnregistered",
    "ExternalWithoutAudits",
    "FanOutTotal",
    "HighCardinalityKey",
    "HistoryJoin",
    "HugeFullModel",
    "IntervalEdge",
    "LimitInModel",
    "MissingColumn",
    "MissingGrain",
    "MissingKeyAudit",
    "MissingKeyColumn",
    "NoStart",
    "NotInNullable",
    "RandomValue",
    "ScdValidity",
    "SelectStar",
    "TimeColumnOutsideInterval",
    "TimeFilterMissing",
    "TimeFilterWrongColumn",
    "UnboundedRecursion",
    "UncastProjection",
    "UndefinedVariable",
    "UnionColumnOrder",
    "UniqueKeyNoAudit",
    "WindowOverInterval",
]
