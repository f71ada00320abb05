"""Joins that change their partner, their condition or their side, and joins that multiply rows."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.joining import fixed_columns, keys_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.canonical import Join, Meaning
from ci_bot.worker.rules.sql.queries import plain, selects, table_name

CHANGED = rule("join-changed")
MULTIPLIES = rule("join-may-multiply")


@on_change(CHANGED)
def changed(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Joins of a partner that both versions have, on other conditions or in another way."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    called = inputs.names.within
    before = [join for join in old.joins if join not in new.joins]
    after = [join for join in new.joins if join not in old.joins]
    for was in before:
        now = next((join for join in after if join.target == was.target), None)
        if now is None:
            yield _gone(pair, inputs, was, old)
            continue
        after.remove(now)
        told: list[str] = []
        partner = inputs.names.within(was.target)
        if was.how != now.how:
            told.append(f"{was.how} JOIN becomes {now.how} JOIN")
        told += [f"no longer on {called(old.show(text))}" for text in sorted(was.on - now.on)]
        told += [f"now on {called(new.show(text))}" for text in sorted(now.on - was.on)]
        yield Observation(
            CHANGED,
            f"The join of `{partner}` changes: {'; '.join(told) or 'its keys'}.",
            "the owner confirms which rows meet, and which are dropped or kept",
            model=pair.after,
            subject=(_subject(was, inputs),),
            anchors=(f"JOIN {partner}", partner, "JOIN"),
        )
    for came in after:
        if came.how == "INNER":
            partner = inputs.names.within(came.target)
            yield Observation(
                CHANGED,
                f"`{partner}` is joined newly, and rows without a match are dropped.",
                "every row has a match, or the others are meant to go",
                severity="medium",
                model=pair.after,
                subject=(_subject(came, inputs),),
                anchors=(f"JOIN {partner}", partner, "JOIN"),
            )


def _gone(pair: Pair, inputs: RuleInputs, was: Join, old: Meaning) -> Observation:
    filters = was.how not in {"LEFT", "FULL"}
    on = inputs.names.within(" and ".join(old.show(text) for text in sorted(was.on)))
    return Observation(
        CHANGED,
        f"`{inputs.names.within(was.target)}` is no longer joined{f' on {on}' if on else ''}"
        + ("; rows that it dropped come back." if filters else "."),
        "the owner confirms that the partner is not needed",
        severity=None if filters else "medium",
        model=pair.after,
        subject=(_subject(was, inputs),),
        anchors=("FROM",),
    )


def _subject(join: Join, inputs: RuleInputs) -> str:
    """The join: one partner may be joined twice, on other conditions."""
    return inputs.names.within(" ".join([join.target, *sorted(join.on)]))


@on_change(MULTIPLIES)
def may_multiply(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """New joins whose condition does not fix one row of the partner."""
    if pair.meanings is None or pair.query_after is None:
        return
    old, new = pair.meanings
    fresh_nodes = [join.node for join in new.joins if join not in old.joins]
    if not fresh_nodes:
        return
    models = {plain(name): model for name, model in inputs.after.items()}
    for scope in selects(pair.query_after.root):
        for join in scope.expression.args.get("joins") or []:
            if not any(join is node for node in fresh_nodes):
                continue
            source = scope.sources.get(join.this.alias_or_name)
            if not isinstance(source, exp.Table):
                continue
            keys = keys_of(models.get(table_name(source)))
            fixed = fixed_columns(join)
            if not keys or any(key <= fixed for key in keys) or join.kind == "CROSS":
                continue
            key = min(keys, key=lambda item: (len(item - fixed), sorted(item)))
            partner = inputs.names.of(table_name(source))
            yield Observation(
                MULTIPLIES,
                f"A row of `{partner}` is identified by {names(key)}, but the "
                f"join fixes {names(fixed) or 'none of it'}: one row may meet several and be "
                "counted several times.",
                "the join compares the whole key, or its partner is reduced to one row first",
                model=pair.after,
                subject=(f"{partner} by {', '.join(sorted(fixed))}",),
                anchors=(f"JOIN {partner}", "JOIN"),
            )
