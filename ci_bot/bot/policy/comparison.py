"""What a change of a policy would loosen once it is merged. Pure.

Where it cannot be told whether an entry loosens or tightens, it loosens: a person looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar, get_args

from ci_bot.bot.actions import FailOn
from ci_bot.bot.policy import severity_overrides
from ci_bot.bot.policy.document import (
    EVERY_RULE,
    AnyWeight,
    Entry,
    IgnoreEntry,
    PolicyLimits,
    SeverityEntry,
)
from ci_bot.bot.policy.policy import Policy
from ci_bot.protocol.plan import Severity

Weights = Mapping[str, frozenset[Severity]]
_HEAVIEST_FIRST: tuple[str, ...] = (*get_args(Severity), "off")
_STRICTEST_FIRST: tuple[FailOn, ...] = ("high", "blocker", "never")
_UNSET: Mapping[str, float | FailOn] = {
    "max_intervals": float("inf"),
    "max_executor_hours": float("inf"),
    "diff_tolerance": 0.0,
    "fail_on": "blocker",
}
EntryT = TypeVar("EntryT", bound=Entry)


@dataclass(frozen=True)
class PolicyChange:
    """One difference between two versions of a policy.

    Attributes:
        told: it in a sentence without its full stop.
        loosens: whether findings would count less, or other people may accept them.
        path, line: in the new version; the line is None for what is gone.
    """

    told: str
    loosens: bool
    path: str | None = None
    line: int | None = None


def changes(before: Policy, after: Policy, *, weights: Weights, today: date) -> list[PolicyChange]:
    """Every difference, those that loosen first.

    Args:
        weights: all weights that each rule may have by itself.
    """
    found = [
        *_severities(before, after, weights),
        *_ignores(before, after, today),
        *_statements(before, after),
        *_schemas(before, after),
        *_limits(before.limits, after.limits),
        *_tolerances(before, after),
        *_owners(before, after),
    ]
    return sorted(found, key=lambda item: (not item.loosens, item.path or "", item.line or 0))


def _rank(weight: AnyWeight) -> int:
    return _HEAVIEST_FIRST.index(weight)


def _new_and_gone(
    before: Sequence[EntryT], after: Sequence[EntryT]
) -> tuple[list[EntryT], list[EntryT]]:
    """What only one side has; the reason is no part of an entry's meaning."""
    old, new = [_meaning(entry) for entry in before], [_meaning(entry) for entry in after]
    return (
        [entry for entry, meaning in zip(after, new, strict=True) if meaning not in old],
        [entry for entry, meaning in zip(before, old, strict=True) if meaning not in new],
    )


def _meaning(entry: Entry) -> dict[str, object]:
    return entry.model_dump(exclude={"reason"})


def _severities(before: Policy, after: Policy, weights: Weights) -> Iterator[PolicyChange]:
    new, gone = _new_and_gone(before.severity, after.severity)
    for entry in new:
        lighter = _lowers(entry, before.severity, weights)
        yield _at(
            entry,
            f"{severity_overrides.about(entry)} would weigh {severity_overrides.weight(entry)}",
            loosens=lighter,
        )
    for entry in gone:
        heavier = _raises(entry, after.severity, weights)
        weight = severity_overrides.weight(entry)
        told = f"{severity_overrides.about(entry)} would no longer weigh {weight}"
        yield PolicyChange(told, loosens=heavier, path=entry.path)
    kept_before = [_meaning(entry) for entry in before.severity if entry not in gone]
    kept_after = [_meaning(entry) for entry in after.severity if entry not in new]
    if kept_before != kept_after:
        first = after.severity[0]
        told = "the entries of `severity` would stand in another order, and the last one counts"
        yield _at(first, told, loosens=True)


def _lowers(entry: SeverityEntry, others: Iterable[SeverityEntry], weights: Weights) -> bool:
    """Whether a new entry may make a finding lighter than all that was said of it before."""
    said = [_rank(other.severity) for other in others if _share_a_rule(entry, other)]
    heaviest = min([*said, *(_heaviest(rule, weights) for rule in entry.rule)])
    return _rank(entry.severity) > heaviest


def _raises(entry: SeverityEntry, others: Iterable[SeverityEntry], weights: Weights) -> bool:
    """Whether an entry that goes may have made a finding heavier than what is left does."""
    said = [_rank(other.severity) for other in others if _share_a_rule(entry, other)]
    lightest = max([*said, *(_lightest(rule, weights) for rule in entry.rule)])
    return _rank(entry.severity) < lightest


def _heaviest(rule: str, weights: Weights) -> int:
    return min(map(_rank, weights.get(rule, ())), default=0)


def _lightest(rule: str, weights: Weights) -> int:
    if rule == EVERY_RULE:  # it is an upper bound, and raises nothing
        return 0
    return max(map(_rank, weights.get(rule, ())), default=0)


def _share_a_rule(one: SeverityEntry, other: SeverityEntry) -> bool:
    named = {*one.rule, *other.rule}
    return EVERY_RULE in named or bool(set(one.rule) & set(other.rule))


def _ignores(before: Policy, after: Policy, today: date) -> Iterator[PolicyChange]:
    new, gone = _new_and_gone(before.ignore, after.ignore)
    for entry in new:
        until = entry.until.isoformat()
        shorter = any(
            _same_but_until(entry, old) and old.until > entry.until for old in before.ignore
        )
        yield _at(
            entry,
            f"{severity_overrides.about(entry)} would be ignored until {until}",
            loosens=not shorter and entry.until >= today,
        )
    for entry in gone:
        if not any(_same_but_until(entry, other) for other in after.ignore):
            told = f"{severity_overrides.about(entry)} would no longer be ignored"
            yield PolicyChange(told, loosens=False, path=entry.path)


def _same_but_until(one: IgnoreEntry, other: IgnoreEntry) -> bool:
    left_out = {"reason", "until"}
    return one.model_dump(exclude=left_out) == other.model_dump(exclude=left_out)


def _statements(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    new, gone = _new_and_gone(before.statements, after.statements)
    for entry in new:
        yield _at(entry, f"it would be allowed {severity_overrides.allowed(entry)}", loosens=True)
    for entry in gone:
        told = f"it would no longer be allowed {severity_overrides.allowed(entry)}"
        yield PolicyChange(told, loosens=False, path=entry.path)


def _schemas(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    old, new = before.personal_schemas, after.personal_schemas
    if old == new:
        return
    added = sorted(set(new or ()) - set(old or ()))
    gone = sorted(set(old or ()) - set(new or ()))
    if added:
        told = f"schemas {severity_overrides.listed(added)} would be allowed to hold personal data"
        yield PolicyChange(told, loosens=True, path=_path(after))
    if gone:
        schemas = severity_overrides.listed(gone)
        told = f"schemas {schemas} would no longer be allowed to hold personal data"
        yield PolicyChange(told, loosens=False, path=_path(before))


def _limits(before: PolicyLimits, after: PolicyLimits) -> Iterator[PolicyChange]:
    for name, field in PolicyLimits.model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        told = f"the limit `{field.alias}` would be {_value(new)} instead of {_value(old)}"
        yield PolicyChange(told, loosens=_is_wider(name, old, new))


def _is_wider(name: str, old: float | FailOn | None, new: float | FailOn | None) -> bool:
    """Whether a limit lets more through; what is not set lets through what it does by default."""
    unset = _UNSET[name]
    before, after = unset if old is None else old, unset if new is None else new
    if isinstance(before, str) or isinstance(after, str):
        order: tuple[object, ...] = _STRICTEST_FIRST
        return order.index(after) > order.index(before)
    return after > before


def _value(value: object) -> str:
    return "not set" if value is None else f"{value}"


def _tolerances(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    new, gone = _new_and_gone(before.data_diff, after.data_diff)
    for entry in new:
        yield _at(
            entry,
            f"{severity_overrides.differs(entry)} would be tolerated",
            loosens=entry.tolerance > 0,
        )
    widest = max([after.limits.diff_tolerance or 0.0, *(e.tolerance for e in after.data_diff)])
    for entry in gone:
        told = f"{severity_overrides.differs(entry)} would no longer be tolerated"
        yield PolicyChange(told, loosens=widest > entry.tolerance, path=entry.path)


def _owners(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    if [_meaning(one) for one in before.owners] == [_meaning(one) for one in after.owners]:
        return
    new, gone = _new_and_gone(before.owners, after.owners)
    for entry in new:
        told = (
            f"{severity_overrides.models(entry)} would be owned by {severity_overrides.whom(entry)}"
        )
        yield _at(entry, told, loosens=True)
    for entry in gone:
        models, owners = severity_overrides.models(entry), severity_overrides.whom(entry)
        told = f"{models} would no longer be owned by {owners}"
        yield PolicyChange(told, loosens=True, path=entry.path)
    if not new and not gone:
        told = "the owners would stand in another order, and the last one counts"
        yield _at(after.owners[0], told, loosens=True)


def _at(entry: Entry, told: str, *, loosens: bool) -> PolicyChange:
    return PolicyChange(told, loosens, entry.path, entry.line)


def _path(policy: Policy) -> str | None:
    return next((entry.path for entry in policy.entries), None)
