"""What a changed policy would loosen once it is merged. Pure.

If it is not known whether an entry loosens or tightens, it counts as loosening: a person checks it.
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
    IgnoreEntry,
    PolicyEntry,
    PolicyLimits,
    SeverityEntry,
)
from ci_bot.bot.policy.policy import Policy
from ci_bot.protocol.files import DEFAULT_MAX_INTERVALS
from ci_bot.protocol.plan import Severity

Weights = Mapping[str, frozenset[Severity]]
_HEAVIEST_FIRST: tuple[str, ...] = (*get_args(Severity), "off")
_STRICTEST_FIRST: tuple[FailOn, ...] = ("high", "blocker", "never")
_UNSET: Mapping[str, float | FailOn] = {
    "max_intervals": DEFAULT_MAX_INTERVALS,
    "max_executor_hours": float("inf"),
    "diff_tolerance": 0.0,
    "fail_on": "blocker",
}
EntryT = TypeVar("EntryT", bound=PolicyEntry)


@dataclass(frozen=True)
class PolicyChange:
    """One difference between two versions of a policy.

    Attributes:
        sentence: What changes, without a full stop.
        loosens: whether findings would count less, or other people could accept them.
        path, line: its place in the new version; the line is None for a removed entry.
    """

    sentence: str
    loosens: bool
    path: str | None = None
    line: int | None = None


def list_policy_changes(
    before: Policy, after: Policy, *, weights: Weights, today: date
) -> list[PolicyChange]:
    """Lists every difference, those that loosen first.

    Args:
        weights: all weights that each rule may have without a policy.
    """
    found = [
        *_compare_policy_severities(before, after, weights),
        *_compare_policy_ignores(before, after, today),
        *_compare_policy_statements(before, after),
        *_compare_policy_schemas(before, after),
        *_compare_policy_limits(before.limits, after.limits),
        *_compare_policy_tolerances(before, after),
        *_compare_policy_owners(before, after),
        *_compare_policy_trust(before, after),
        *_compare_policy_exposures(before, after),
        *_compare_policy_words(before, after),
    ]
    return sorted(found, key=lambda item: (not item.loosens, item.path or "", item.line or 0))


def _rank_weight(weight: AnyWeight) -> int:
    return _HEAVIEST_FIRST.index(weight)


def _list_new_and_gone_entries(
    before: Sequence[EntryT], after: Sequence[EntryT]
) -> tuple[list[EntryT], list[EntryT]]:
    """Returns the new and the removed entries; the reason is no part of an entry's meaning."""
    old = [_get_meaning_of_entry(entry) for entry in before]
    new = [_get_meaning_of_entry(entry) for entry in after]
    return (
        [entry for entry, meaning in zip(after, new, strict=True) if meaning not in old],
        [entry for entry, meaning in zip(before, old, strict=True) if meaning not in new],
    )


def _get_meaning_of_entry(entry: PolicyEntry) -> dict[str, object]:
    return entry.model_dump(exclude={"reason"})


def _compare_policy_severities(
    before: Policy, after: Policy, weights: Weights
) -> Iterator[PolicyChange]:
    new, gone = _list_new_and_gone_entries(before.severity, after.severity)
    for entry in new:
        lighter = _may_entry_lower(entry, before.severity, weights)
        yield _make_change_at_entry(
            entry,
            f"{severity_overrides.describe_findings_of_policy_entry(entry)} would weigh "
            f"{severity_overrides.describe_severity_of_policy_entry(entry)}",
            loosens=lighter,
        )
    for entry in gone:
        heavier = _may_entry_have_raised(entry, after.severity, weights)
        weight = severity_overrides.describe_severity_of_policy_entry(entry)
        sentence = (
            f"{severity_overrides.describe_findings_of_policy_entry(entry)} would no "
            f"longer weigh {weight}"
        )
        yield PolicyChange(sentence, loosens=heavier, path=entry.path)
    kept_before = [_get_meaning_of_entry(entry) for entry in before.severity if entry not in gone]
    kept_after = [_get_meaning_of_entry(entry) for entry in after.severity if entry not in new]
    if kept_before != kept_after:
        first = after.severity[0]
        sentence = "the entries of `severity` would be in another order, and the last one counts"
        yield _make_change_at_entry(first, sentence, loosens=True)


def _may_entry_lower(
    entry: SeverityEntry, others: Iterable[SeverityEntry], weights: Weights
) -> bool:
    """Whether a new entry may give a finding less weight than all earlier entries."""
    ranks = [
        _rank_weight(other.severity) for other in others if _do_entries_share_a_rule(entry, other)
    ]
    heaviest = min([*ranks, *(_find_heaviest_weight(rule, weights) for rule in entry.rule)])
    return _rank_weight(entry.severity) > heaviest


def _may_entry_have_raised(
    entry: SeverityEntry, others: Iterable[SeverityEntry], weights: Weights
) -> bool:
    """Whether a removed entry may have given a finding more weight than the remaining ones."""
    ranks = [
        _rank_weight(other.severity) for other in others if _do_entries_share_a_rule(entry, other)
    ]
    lightest = max([*ranks, *(_find_lightest_weight(rule, weights) for rule in entry.rule)])
    return _rank_weight(entry.severity) < lightest


def _find_heaviest_weight(rule: str, weights: Weights) -> int:
    return min(map(_rank_weight, weights.get(rule, ())), default=0)


def _find_lightest_weight(rule: str, weights: Weights) -> int:
    if rule == EVERY_RULE:  # it is an upper limit, and raises nothing
        return 0
    return max(map(_rank_weight, weights.get(rule, ())), default=0)


def _do_entries_share_a_rule(one: SeverityEntry, other: SeverityEntry) -> bool:
    named = {*one.rule, *other.rule}
    return EVERY_RULE in named or bool(set(one.rule) & set(other.rule))


def _compare_policy_ignores(before: Policy, after: Policy, today: date) -> Iterator[PolicyChange]:
    new, gone = _list_new_and_gone_entries(before.ignore, after.ignore)
    for entry in new:
        until = entry.until.isoformat()
        shorter = any(
            _is_same_entry_but_until(entry, old) and old.until > entry.until
            for old in before.ignore
        )
        yield _make_change_at_entry(
            entry,
            f"{severity_overrides.describe_findings_of_policy_entry(entry)} would be ignored "
            f"until {until}",
            loosens=not shorter and entry.until >= today,
        )
    for entry in gone:
        if not any(_is_same_entry_but_until(entry, other) for other in after.ignore):
            sentence = (
                f"{severity_overrides.describe_findings_of_policy_entry(entry)} would no "
                f"longer be ignored"
            )
            yield PolicyChange(sentence, loosens=False, path=entry.path)


def _is_same_entry_but_until(one: IgnoreEntry, other: IgnoreEntry) -> bool:
    left_out = {"reason", "until"}
    return one.model_dump(exclude=left_out) == other.model_dump(exclude=left_out)


def _compare_policy_statements(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    new, gone = _list_new_and_gone_entries(before.statements, after.statements)
    for entry in new:
        yield _make_change_at_entry(
            entry,
            f"it would be allowed {severity_overrides.describe_statements_of_policy_entry(entry)}",
            loosens=True,
        )
    for entry in gone:
        sentence = (
            f"it would no longer be allowed "
            f"{severity_overrides.describe_statements_of_policy_entry(entry)}"
        )
        yield PolicyChange(sentence, loosens=False, path=entry.path)


def _compare_policy_schemas(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    old, new = before.personal_schemas, after.personal_schemas
    if old == new:
        return
    added = sorted(set(new or ()) - set(old or ()))
    gone = sorted(set(old or ()) - set(new or ()))
    if added:
        sentence = (
            f"schemas {severity_overrides.list_names_in_policy_entry(added)} would be allowed to "
            "hold personal data"
        )
        yield PolicyChange(sentence, loosens=True, path=_find_policy_path(after))
    if gone:
        schemas = severity_overrides.list_names_in_policy_entry(gone)
        sentence = f"schemas {schemas} would no longer be allowed to hold personal data"
        yield PolicyChange(sentence, loosens=False, path=_find_policy_path(before))


def _compare_policy_limits(before: PolicyLimits, after: PolicyLimits) -> Iterator[PolicyChange]:
    for name, field in PolicyLimits.model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        sentence = (
            f"the limit `{field.alias}` would be {_format_policy_value(new)} instead of "
            f"{_format_policy_value(old)}"
        )
        yield PolicyChange(sentence, loosens=_is_policy_limit_wider(name, old, new))


def _is_policy_limit_wider(
    name: str, old: float | FailOn | None, new: float | FailOn | None
) -> bool:
    """Whether a limit allows more than before; a limit that is not set has its default."""
    unset = _UNSET[name]
    before, after = unset if old is None else old, unset if new is None else new
    if isinstance(before, str) or isinstance(after, str):
        order: tuple[object, ...] = _STRICTEST_FIRST
        return order.index(after) > order.index(before)
    return after > before


def _format_policy_value(value: object) -> str:
    return "not set" if value is None else f"{value}"


def _compare_policy_tolerances(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    new, gone = _list_new_and_gone_entries(before.data_diff, after.data_diff)
    for entry in new:
        yield _make_change_at_entry(
            entry,
            f"{severity_overrides.describe_tolerance_of_policy(entry)} would be tolerated",
            loosens=entry.tolerance > 0,
        )
    widest = max([after.limits.diff_tolerance or 0.0, *(e.tolerance for e in after.data_diff)])
    for entry in gone:
        sentence = (
            f"{severity_overrides.describe_tolerance_of_policy(entry)} would no longer be tolerated"
        )
        yield PolicyChange(sentence, loosens=widest > entry.tolerance, path=entry.path)


def _compare_policy_owners(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    if [_get_meaning_of_entry(one) for one in before.owners] == [
        _get_meaning_of_entry(one) for one in after.owners
    ]:
        return
    new, gone = _list_new_and_gone_entries(before.owners, after.owners)
    for entry in new:
        sentence = (
            f"{severity_overrides.describe_models_of_policy_entry(entry)} would be owned by "
            f"{severity_overrides.describe_accounts_of_policy_entry(entry)}"
        )
        yield _make_change_at_entry(entry, sentence, loosens=True)
    for entry in gone:
        models = severity_overrides.describe_models_of_policy_entry(entry)
        owners = severity_overrides.describe_accounts_of_policy_entry(entry)
        sentence = f"{models} would no longer be owned by {owners}"
        yield PolicyChange(sentence, loosens=True, path=entry.path)
    if not new and not gone:
        sentence = "the owners would be in another order, and the last one counts"
        yield _make_change_at_entry(after.owners[0], sentence, loosens=True)


def _compare_policy_trust(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    old, new = before.trusts_writers, after.trusts_writers
    if old is None and new is not None:
        sentence = f"{severity_overrides.describe_trust_of_policy_entry(new)}, and would be a note"
        yield _make_change_at_entry(new, sentence, loosens=True)
    elif old is not None and new is None:
        sentence = (
            "code that runs on load would no longer be a note for people with write permission"
        )
        yield PolicyChange(sentence, loosens=False, path=old.path)


def _compare_policy_exposures(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    """Compares who is asked, and about what; the line does not matter."""
    old, new = _map_policy_exposures(before), _map_policy_exposures(after)
    for names, does, loosens in (
        (old.keys() - new.keys(), "would go", True),
        (
            {n for n in old.keys() & new.keys() if old[n] != new[n]},
            "would get other columns or owners",
            True,
        ),
        (new.keys() - old.keys(), "would be new", False),
    ):
        if names:
            listed = severity_overrides.list_names_in_policy_entry(
                sorted(map(_normalize_policy_name, names))
            )
            one = "exposure" if len(names) == 1 else "exposures"
            paths = {item.path for item in (*after.exposures, *before.exposures)}
            path = next(iter(paths)) if len(paths) == 1 else _find_policy_path(after)
            yield PolicyChange(f"the {one} {listed} {does}", loosens, path=path)


def _map_policy_exposures(policy: Policy) -> dict[str, list[object]]:
    """Returns, for each name, the meanings of all its exposures."""
    found: dict[str, list[object]] = {}
    for item in policy.exposures:
        meaning = (item.accounts, item.contacts, {n: c and {*c} for n, c in item.reads.items()})
        found.setdefault(item.name, []).append(meaning)
    return found


def _normalize_policy_name(name: str) -> str:
    return name.replace("`", "'")


def _make_change_at_entry(entry: PolicyEntry, sentence: str, *, loosens: bool) -> PolicyChange:
    return PolicyChange(sentence, loosens, entry.path, entry.line)


def _find_policy_path(policy: Policy) -> str | None:
    return next((entry.path for entry in policy.entries), None)


def _compare_policy_words(before: Policy, after: Policy) -> Iterator[PolicyChange]:
    """Compares the team's own texts: they loosen nothing, but every comment shows them."""
    for name, old, new in (
        ("header", before.header, after.header),
        ("footer", before.footer, after.footer),
    ):
        if old != new:
            sentence = f"the comment would have {'another' if new else 'no'} {name}"
            yield PolicyChange(sentence, loosens=False, path=_find_policy_path(after))
    added, _ = _list_new_and_gone_entries(before.messages, after.messages)
    for entry in added:
        yield _make_change_at_entry(
            entry, severity_overrides.describe_policy_entry(entry), loosens=False
        )
