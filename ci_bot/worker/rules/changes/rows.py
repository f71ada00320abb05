"""Changes of what a row stands for, and of how often equal rows count."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.changes.windows import shown
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.keys import grain_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.meaning import Meaning

GRAIN = rule("grain-changed")
DISTINCT = rule("distinct-changed")
UNION = rule("union-changed")


@on_change(GRAIN)
def grain(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """What one row stands for."""
    told = ""
    if pair.meanings is not None:
        old, new = pair.meanings
        if (
            old.groups
            and new.groups
            and old.groups[-1] != new.groups[-1]
            and (len(old.groups) == len(new.groups))
        ):
            less = {shown(old, text, inputs) for text in old.groups[-1] - new.groups[-1]}
            more = {shown(new, text, inputs) for text in new.groups[-1] - old.groups[-1]}
            parts = [
                f"without {names(less)}" if less else "",
                f"with {names(more)}" if more else "",
            ]
            # Where the words are the same, a key of that name is computed differently.
            if less != more:
                told = f"Rows are grouped {' and '.join(part for part in parts if part)}."
        elif bool(old.groups) != bool(new.groups):
            told = "Rows are grouped now." if new.groups else "Rows are no longer grouped."
    declared_old, declared_new = set(grain_of(pair.before)), set(grain_of(pair.after))
    if told:
        yield Observation(
            GRAIN,
            f"{told} One row stands for something else than before.",
            "the owner confirms the new meaning of a row, and readers do not sum it twice",
            model=pair.after,
            anchors=("GROUP BY",),
        )
    elif declared_old and declared_old != declared_new:
        yield Observation(
            GRAIN,
            "The declared grain changes from "
            f"{names(column for key in declared_old for column in key)} to "
            f"{names(column for key in declared_new for column in key) or 'none'}.",
            "the declared grain is what identifies a row",
            severity="medium" if declared_new else "low",
            model=pair.after,
            anchors=("grain", "grains", "name"),
        )


@on_change(DISTINCT)
def distinct(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """DISTINCT that hides duplicates, or no longer removes them."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    if new.distincts > old.distincts:
        joined = len(new.joins) > len(old.joins)
        yield Observation(
            DISTINCT,
            "DISTINCT is new"
            + (
                ", together with a join: it hides rows that the join multiplies until two of them "
                "differ."
                if joined
                else ": equal rows are dropped from here on."
            ),
            "the duplicates are understood, or removed where they arise",
            severity="high" if joined else None,
            model=pair.after,
            anchors=("DISTINCT",),
        )
    elif new.distincts < old.distincts and not len(new.groups) > len(old.groups):
        yield Observation(
            DISTINCT,
            "DISTINCT is gone: rows that were dropped as duplicates now count.",
            "the rows are unique without it",
            severity="high",
            model=pair.after,
            anchors=("SELECT",),
        )


@on_change(UNION)
def unions(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """UNION against UNION ALL, and branches that come or go."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    if old.unions == new.unions:
        return
    lost, came = old.unions - new.unions, new.unions - old.unions
    told = [f"{n} {kind} gone" for kind, n in lost.items()]
    told += [f"{n} {kind} new" for kind, n in came.items()]
    dedups = came["UNION"] > 0
    in_parts = _is_full_join_in_parts(old, new)
    yield Observation(
        UNION,
        f"Set operations change: {names(told)}."
        + (" UNION without ALL drops equal rows of all branches." if dedups else "")
        + (" The same tables were brought together by a full join." if in_parts else ""),
        "the owner confirms which rows come together, and whether equal ones count once",
        severity="low" if in_parts else None,
        model=pair.after,
        anchors=("UNION", "EXCEPT", "INTERSECT", "FROM"),
    )


def _is_full_join_in_parts(old: Meaning, new: Meaning) -> bool:
    """Whether UNION ALL stands where full joins stood, over the same tables."""
    lost, came = old.unions - new.unions, new.unions - old.unions
    fulls = [sum(join.how == "FULL" for join in side.joins) for side in (old, new)]
    tables = [{join.target for join in side.joins} | set(+side.reads) for side in (old, new)]
    return (
        not lost
        and set(came) == {"UNION ALL"}
        and fulls[0] - fulls[1] >= came["UNION ALL"]
        and tables[0] == tables[1]
    )
