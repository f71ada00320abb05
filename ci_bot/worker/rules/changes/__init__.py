"""Rules on a model before and after the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_bot.worker.rules.changes import (
    audits,
    definition,
    exposure,
    forward,
    joins,
    results,
    rows,
    storage,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.pair import Pair

ChangeRule = Callable[[Pair, RuleInputs], Iterator[Observation]]

CHANGE_RULES: tuple[ChangeRule, ...] = (
    audits.removed,
    audits.weakened,
    definition.kind,
    definition.time_column,
    definition.unique_key,
    definition.start,
    definition.lookback,
    definition.cron,
    storage.batch_size,
    storage.guards,
    storage.layout,
    definition.dialect_or_gateway,
    definition.ignored_rules,
    storage.merge_logic,
    exposure.grants,
    exposure.personal_data,
    forward.destructive,
    joins.changed,
    joins.may_multiply,
    results.retyped,
    results.divisions,
    results.aggregates,
    results.same_result,
    rows.filters,
    rows.grain,
    rows.distinct,
    rows.unions,
)
