"""Joins with another partner, condition or side, and joins that multiply rows."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_fixed_columns, list_unique_keys
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import JoinMeaning, QueryMeaning, plain_name, table_name

CHANGED = find_rule("join-changed")
MULTIPLIES = find_rule("join-may-multiply")


@on_change(CHANGED)
def find_changed_joins(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds joins with other conditions or another type, and joins that are added or removed."""
    if pair.both_meanings is None:
        return
    old, new = pair.both_meanings
    called = inputs.names.shorten_in_text
    before = [
        join for join in old.joins if join not in new.joins and not _is_join_kept(join, old, new)
    ]
    after = [
        join for join in new.joins if join not in old.joins and not _is_join_kept(join, new, old)
    ]
    for was in before:
        now = next((join for join in after if join.target == was.target), None)
        if now is None:
            yield _observe_gone_join(pair, inputs, was, old)
            continue
        after.remove(now)
        differences = [called(part) for part in _describe_changed_join(was, now, old, new)]
        if not differences:
            continue
        yield RuleObservation(
            CHANGED,
            f"The join of `{called(was.target)}` changes: {'; '.join(differences)}.",
            "the owner confirms which rows meet, and which are dropped or kept",
            model=pair.after,
            subject=(_make_subject_of_changed_join(was, old, inputs),),
            anchors=(f"JOIN {called(was.target)}", called(was.target), "JOIN"),
        )
    for new_join in after:
        if new_join.how == "INNER":
            partner = inputs.names.shorten_in_text(new_join.target)
            yield RuleObservation(
                CHANGED,
                f"`{partner}` is joined newly, and rows without a match are dropped.",
                "every row has a match, or the others are meant to go",
                severity="medium",
                model=pair.after,
                subject=(_make_subject_of_changed_join(new_join, new, inputs),),
                anchors=(f"JOIN {partner}", partner, "JOIN"),
            )


def _is_join_kept(join: JoinMeaning, its: QueryMeaning, other: QueryMeaning) -> bool:
    """Whether the other version also reads the partner with the conditions of this inner join.

    It may read the partner first and join the others to it, or have the conditions in WHERE.
    """
    return (
        join.is_inner
        and other.reads[join.target] >= its.reads[join.target]
        and all(key in other.filters or key in other.inner_conditions for key in join.on)
    )


def _describe_changed_join(
    was: JoinMeaning, now: JoinMeaning, old: QueryMeaning, new: QueryMeaning
) -> list[str]:
    """Describes the differences of two joins of one partner."""
    gone, added = set(was.on - now.on), set(now.on - was.on)
    if was.is_inner and now.is_inner:
        gone -= new.inner_conditions | set(new.filters)
        added -= old.inner_conditions | set(old.filters)
        differences = []
    else:
        differences = [f"{was.how} JOIN becomes {now.how} JOIN"] if was.how != now.how else []
    if not differences and not gone:
        # Both tables got the column, so no join could compare it before.
        added = {key for key in added if not _compares_new_columns(now.places[key], old)}
    differences += sorted(f"no longer on {old.show_key(key)}" for key in gone)
    differences += sorted(f"now on {new.show_key(key)}" for key in added)
    return differences


def _compares_new_columns(places: frozenset[tuple[str, str]], old: QueryMeaning) -> bool:
    return bool(places) and all(
        target in old.columns and column not in old.columns[target] for target, column in places
    )


def _observe_gone_join(
    pair: ModelPair, inputs: RuleInputs, was: JoinMeaning, old: QueryMeaning
) -> RuleObservation:
    filters = was.how not in {"LEFT", "FULL"}
    on = inputs.names.shorten_in_text(" and ".join(sorted(old.show_key(key) for key in was.on)))
    return RuleObservation(
        CHANGED,
        f"`{inputs.names.shorten_in_text(was.target)}` is no longer "
        f"joined{f' on {on}' if on else ''}"
        + ("; rows that it dropped come back." if filters else "."),
        "the owner confirms that the partner is not needed",
        severity=None if filters else "medium",
        model=pair.after,
        subject=(_make_subject_of_changed_join(was, old, inputs),),
        anchors=("FROM",),
    )


def _make_subject_of_changed_join(join: JoinMeaning, its: QueryMeaning, inputs: RuleInputs) -> str:
    """Makes the identity of a join: one partner may be joined twice, with different conditions."""
    return inputs.names.shorten_in_text(
        " ".join([join.target, *sorted(map(its.show_key, join.on))])
    )


@on_change(MULTIPLIES)
def find_multiplying_joins(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds new joins whose condition does not select a single row of the partner."""
    if pair.both_meanings is None or pair.query_after is None:
        return
    old, new = pair.both_meanings
    fresh_nodes = [join.node for join in new.joins if join not in old.joins]
    if not fresh_nodes:
        return
    models = {plain_name(name): model for name, model in inputs.after.items()}
    for select in pair.query_after.root.selects:
        for join in select.joins:
            source = select.find_table(join.alias)
            if source is None or not any(join.node is node for node in fresh_nodes):
                continue
            keys = list_unique_keys(models.get(table_name(source)))
            fixed = list_fixed_columns(join)
            if not keys or any(key <= fixed for key in keys) or join.node.kind == "CROSS":
                continue
            key = min(keys, key=lambda item: (len(item - fixed), sorted(item)))
            partner = inputs.names.short_name(table_name(source))
            yield RuleObservation(
                MULTIPLIES,
                f"A row of `{partner}` is identified by {quote_names(key)}, but the "
                f"join fixes {quote_names(fixed) or 'none of it'}: one row may meet several and be "
                "counted several times.",
                "the join compares the whole key, or its partner is reduced to one row first",
                model=pair.after,
                subject=(f"{partner} by {', '.join(sorted(fixed))}",),
                anchors=(f"JOIN {partner}", "JOIN"),
            )
