"""Whether what a statement does is the environment's own business, and how that is reported."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from ci_bot.protocol.plan import Severity
from ci_bot.worker.sql_effects.effects import (
    THIS_MODEL,
    ObjectName,
    OwnObjects,
    SqlEffect,
    display_name,
)
from ci_bot.worker.sql_effects.read_statement import list_statement_effects

_VERBS = {
    "describes": "changes what the catalog says of",
    "grants": "changes rights on",
    "writes": "writes rows into",
    "creates": "creates",
    "replaces": "replaces",
    "alters": "alters",
    "drops": "drops",
    "moves": "moves away",
}
# What is done to no object.
_SAID = {
    "unknown": "cannot be judged",
    "code": "loads or runs a program",
    "sets": "changes what queries give",
}
# The table that stands for SQLMesh's own where only a part of its statement is read.
PLACEHOLDER: ObjectName = ("__its_own__",)
_RUNS_WHERE = "something that is named only when it runs"


@dataclass(frozen=True)
class RenderedStatement:
    """A statement that SQLMesh would execute.

    Attributes:
        slot: where it stands, as in `post-statement` or `before_all`.
        model: fully qualified name of the model; None for statements of the project.
        source: its text in the project.
        text: what the engine is given; None if it cannot be rendered without the engine.
        dialect: of the engine.
        problem: why it cannot be rendered.
        part: the text is only a part of a statement that SQLMesh makes.
        literal: in place of a text, what stands literally in the source. It counts if no rendering
            does it: behind a condition on a date, say, which holds on some other day.
    """

    slot: str
    model: str | None
    source: str
    text: str | None
    dialect: str
    problem: str = ""
    part: bool = False
    literal: tuple[SqlEffect, ...] | None = None

    @property
    def effects(self) -> tuple[SqlEffect, ...]:
        if self.literal is not None:
            return self.literal
        if self.text is None:
            return (SqlEffect("unknown", "statement", detail=self.problem),)
        found = list_statement_effects(self.text, self.dialect)
        return tuple(e for e in found if not (self.part and e.target == PLACEHOLDER))


@dataclass(frozen=True)
class JudgedEffect:
    """Something that a statement does and that is worth a reader's attention.

    Attributes:
        environment: for which the statement was rendered.
        said: what it does, as the end of a sentence.
        standing: prod's version of the project has the same statement, so nobody adds it now.
    """

    statement: RenderedStatement
    effect: SqlEffect
    severity: Severity
    environment: str
    said: str
    standing: bool = False


EffectKey = tuple[str, str, str, str | None]


def judge_statements(
    statements: Iterable[RenderedStatement], own: OwnObjects
) -> Iterator[JudgedEffect]:
    """What the statements of one place do outside the environment's own objects, or to them."""
    temporary: set[ObjectName] = set()
    for statement in statements:
        for effect in statement.effects:
            if effect.action == "nothing" and effect.target is not None:
                temporary.add(effect.target)
            severity = weigh_effect(effect, own, temporary)
            if statement.text is None and statement.part:
                severity = "medium"  # SQLMesh lets nothing but a query, or an expression, in here
            if severity is not None:
                yield JudgedEffect(
                    statement, effect, severity, own.environment, describe_effect(effect, own)
                )


def list_effect_keys(statements: Iterable[RenderedStatement], own: OwnObjects) -> set[EffectKey]:
    """Action, kind, detail and every name of the target, of all that statements do."""
    return {
        (effect.action, effect.kind, effect.detail, name)
        for statement in statements
        for effect in statement.effects
        for name in own.names_of_target(effect.target)
    }


def judge_hidden_literals(
    literal: Iterable[RenderedStatement], own: OwnObjects, done: set[EffectKey]
) -> Iterator[JudgedEffect]:
    """What stands literally in a place, reaches others, and is in no rendering of it.

    Args:
        done: the effects of all renderings.
    """
    for statement in literal:
        for effect in statement.effects:
            told = list_effect_keys([replace(statement, literal=(effect,))], own)
            severity = weigh_effect(effect, own) if effect.target != THIS_MODEL else None
            reaches_others = severity == "blocker" or effect.action == "sets"
            if severity is not None and reaches_others and not told & done:
                yield JudgedEffect(
                    statement, effect, severity, own.environment, describe_effect(effect, own)
                )


def effect_key(item: JudgedEffect) -> tuple[str, str]:
    """What two effects must have in common to be the same one.

    A query may change while the call in it stays; a statement is one thing.
    """
    statement = item.statement
    if statement.text is None:
        return statement.slot, statement.source
    if statement.part:
        return statement.slot, f"{item.effect.kind}\n{item.effect.detail}"
    return statement.slot, statement.text


def weigh_effect(
    effect: SqlEffect, own: OwnObjects, temporary: Container[ObjectName | None] = ()
) -> Severity | None:
    """How much a new effect weighs; None if it does not.

    Args:
        temporary: views of the session that earlier statements of the same place have made.
    """
    if effect.action == "nothing":
        return None
    if effect.action in ("code", "unknown", "fails"):
        return "blocker"
    if effect.action == "sets":
        return "high"
    if effect.action == "drops" and effect.target in temporary:
        return None  # a temporary view hides every other one of its name
    if not own.is_own_target(effect):
        return "blocker"
    return None if effect.action in ("describes", "directs") else "high"


def describe_effect(effect: SqlEffect, own: OwnObjects) -> str:
    """What an effect is, as the end of a sentence."""
    if effect.action == "fails":
        return f"fails on Spark: {effect.detail}"
    if effect.action in _SAID:
        return f"{_SAID[effect.action]} ({effect.described_effect})"
    if effect.action == "directs":
        where = f" to `{display_name(effect.target)}`" if effect.target else ""
        return f"moves what later statements read and write{where} ({effect.described_effect})"
    if effect.target is None:
        return f"{_VERBS[effect.action]} {effect.detail or _RUNS_WHERE} ({effect.kind})"
    return f"{_VERBS[effect.action]} {own.describe_target(effect.target)} ({effect.kind})"
