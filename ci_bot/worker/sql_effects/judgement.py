"""The judgement of a statement: whose objects it changes, whether it can change rows, in words.

A statement should only change the environment's own objects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.plan import Severity
from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql_effects.effects import THIS_MODEL, ObjectName, OwnObjects, SqlEffect
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
# Actions without a target.
_DESCRIPTIONS = {
    "unknown": "cannot be judged",
    "code": "loads or runs a program",
    "sets": "changes what queries give",
}
# The table that replaces SQLMesh's own, if only a part of its statement is read.
PLACEHOLDER: ObjectName = ("__its_own__",)
_RUNS_WHERE = "an object whose name is known only when it runs"


@dataclass(frozen=True)
class RenderedStatement:
    """A statement that SQLMesh would execute.

    Attributes:
        slot: its position, such as `post-statement` or `before_all`.
        model: fully qualified name of the model; None for statements of the project.
        source: its text in the project.
        text: the text that the engine gets; None if it cannot be rendered without the engine.
        dialect: the dialect of the engine.
        problem: why it cannot be rendered; empty if it can.
        part: whether the text is only a part of a statement that SQLMesh makes.
        literal: without a text, the effects of the literal SQL in the source. They count if no
            rendering has them, for example because a condition is true only on another day.
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
    """An effect of a statement that a reader should check.

    Attributes:
        environment: the name of the environment for which the statement was rendered.
        description: the effect in words, the end of a sentence.
        in_prod: prod's version of the project has the same statement, so this change does not add
            it.
    """

    statement: RenderedStatement
    effect: SqlEffect
    severity: Severity
    environment: str
    description: str
    in_prod: bool = False


EffectKey = tuple[str, str, str, str | None]


def judge_statements(
    statements: Iterable[RenderedStatement], own: OwnObjects
) -> Iterator[JudgedEffect]:
    """Judges the effects of the statements of one model or project, in the order that they run."""
    temporary: set[ObjectName] = set()
    for statement in statements:
        for effect in statement.effects:
            if effect.action == "nothing" and effect.target is not None:
                temporary.add(effect.target)
            severity = weigh_effect(effect, own, temporary)
            if statement.text is None and statement.part:
                severity = "medium"  # SQLMesh accepts only a query or an expression here
            if severity is not None:
                yield JudgedEffect(
                    statement, effect, severity, own.environment, describe_effect(effect, own)
                )


def list_effect_keys(statements: Iterable[RenderedStatement], own: OwnObjects) -> set[EffectKey]:
    """Lists the keys of all effects of the statements: action, kind, detail, and a target's name.

    An effect has one key for each name of its target.
    """
    return {
        (effect.action, effect.kind, effect.detail, name)
        for statement in statements
        for effect in statement.effects
        for name in own.list_target_names(effect.target)
    }


def judge_hidden_literals(
    literal: Iterable[RenderedStatement], own: OwnObjects, done: set[EffectKey]
) -> Iterator[JudgedEffect]:
    """Judges literal SQL that affects others and that no rendering contains.

    Args:
        done: the effects of all renderings.
    """
    for statement in literal:
        for effect in statement.effects:
            keys = list_effect_keys([replace(statement, literal=(effect,))], own)
            severity = weigh_effect(effect, own) if effect.target != THIS_MODEL else None
            reaches_others = severity == "blocker" or effect.action == "sets"
            if severity is not None and reaches_others and not keys & done:
                yield JudgedEffect(
                    statement, effect, severity, own.environment, describe_effect(effect, own)
                )


def make_effect_key(item: JudgedEffect) -> tuple[str, str]:
    """Makes a key that two effects share if they are the same one.

    If a query changes, the call in it can be the same; a statement counts as a whole.
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
    """Weighs a new effect: returns its severity, or None if it is harmless.

    Args:
        temporary: views of the session that earlier statements have made.
    """
    if effect.action == "nothing":
        return None
    if effect.action in ("code", "unknown", "fails"):
        return "blocker"
    if effect.action == "sets":
        return "high"
    if effect.action == "drops" and effect.target in temporary:
        return None  # a temporary view hides any other view of its name
    if not own.is_own_target(effect):
        return "blocker"
    return None if effect.action in ("describes", "directs") else "high"


def describe_effect(effect: SqlEffect, own: OwnObjects) -> str:
    """Describes an effect in words, as the end of a sentence."""
    if effect.action == "fails":
        return f"fails on Spark: {effect.detail}"
    if effect.action in _DESCRIPTIONS:
        return f"{_DESCRIPTIONS[effect.action]} ({effect.described_effect})"
    if effect.action == "directs":
        where = f" to `{'.'.join(effect.target)}`" if effect.target else ""
        return f"moves what later statements read and write{where} ({effect.described_effect})"
    if effect.target is None:
        return f"{_VERBS[effect.action]} {effect.detail or _RUNS_WHERE} ({effect.kind})"
    return f"{_VERBS[effect.action]} {own.describe_target(effect.target)} ({effect.kind})"


_THIS_MODEL = re.compile(
    r"@\{this_model\}|@this_model(?!\w)|\{\{\s*this_model\s*\}\}", re.IGNORECASE
)
_JINJA_BLOCK = re.compile(
    r"^\s*JINJA_STATEMENT_BEGIN;(.*)JINJA_END;?\s*$", re.DOTALL | re.IGNORECASE
)
_SETS_VARIABLE = re.compile(r"^\s*SET\s+VAR(?:IABLE)?\b", re.IGNORECASE)
_PLACEHOLDER = "__this_model"
_QUERIES = ("SELECT", "UNION", "INTERSECT", "EXCEPT", "SUBQUERY", "VALUES")
# Statements that only read, or change where data are kept. Views, functions and variables of the
# session are not in this list, because a later query may read them.
_READ_ONLY = frozenset(
    (*_QUERIES, "SHOW", "DESCRIBE", "REFRESH", "CACHE", "UNCACHE", "SEMICOLON", "SET", "nothing")
)
# Spark lists the partitions of a table again, so rows may be added or removed.
_FINDS_ROWS = ("MSCK", "RECOVER")
# It removes files that no current version of the table reads.
_KEEPS_ROWS = frozenset({"VACUUM"})


def do_statements_change_rows(before: Sequence[str], after: Sequence[str], dialect: str) -> bool:
    """Whether the difference between two lists of statements can change rows or values."""
    old, new = Counter(before), Counter(after)
    differing = [*(old - new), *(new - old)]
    if differing or list(before) == list(after):
        return any(can_statement_change_rows(text, dialect) for text in differing)
    # The same statements in another order: each may depend on one before it.
    return any(can_statement_change_rows(text, dialect) for text in after)


def can_statement_change_rows(text: str, dialect: str) -> bool:
    """Whether a statement, as its file has it, can change rows or values.

    A statement that cannot be read may change them. Statistics, comments, properties, rights and
    caches cannot.
    """
    text = _THIS_MODEL.sub(_PLACEHOLDER, _JINJA_BLOCK.sub(r"\1", text))
    if _SETS_VARIABLE.match(text):
        return True
    return any(
        not _keeps_rows(effect)
        for part in _split_if_macro(text, dialect)
        for effect in list_statement_effects(part, dialect)
    )


def _split_if_macro(text: str, dialect: str) -> Iterable[str]:
    """Splits SQLMesh's `@IF` into the statements that it chooses from; other texts stay whole."""
    if "@" not in text:
        return [text]
    with silence_worker_log("sqlglot"):
        try:
            trees = d.parse(text, default_dialect=dialect)
        except Exception:  # a text that cannot be parsed is judged whole, as unknown
            return [text]
    function = trees[0].this if len(trees) == 1 and isinstance(trees[0], d.MacroFunc) else None
    if not isinstance(function, exp.Anonymous) or function.name.upper() != "IF":
        return [text]
    return [branch.sql(dialect=dialect) for branch in function.expressions[1:]]


def _keeps_rows(effect: SqlEffect) -> bool:
    if effect.kind in _KEEPS_ROWS:
        return True
    if effect.action in ("describes", "grants"):
        return not any(word in effect.kind for word in _FINDS_ROWS)
    return effect.action == "nothing" and effect.target is None and effect.kind in _READ_ONLY
