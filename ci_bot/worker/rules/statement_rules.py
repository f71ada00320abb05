"""SQL statements that change objects outside the environment, load code, or insert by position.

An INSERT without a list of columns and without BY NAME writes the first value into the first column
of the target, and so on. So an unchanged statement has another effect if columns move in its
target, or in a table whose columns it takes by a star.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.plan import Severity, StatementEffect
from ci_bot.protocol.rules import RuleSpec, find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import iterate_pairs, list_touched_models
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_project, on_statement
from ci_bot.worker.sql import ModelQueries, list_known_types, plain_name, table_name
from ci_bot.worker.sql_effects import JudgedEffect, judge_statement_effects_of_models
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

STATEMENT_IS_GONE = "the statement is gone, or a person has run it once instead"
STATEMENT = find_rule("destructive-statement")
CODE = find_rule("code-in-sql")
STANDING = find_rule("standing-statement")
SETTING = find_rule("session-setting")
STATEMENT_RULES = on_statement
_CONFIGS = ("config.yaml", "config.yml", "config.py")
_AROUND = ("before_all", "after_all")
_OF_THE_SESSION = (
    " SQLMesh builds all models in one session and sets nothing back: it also holds for models "
    "that are built after it, and which these are differs from run to run."
)
_CLEARS = {
    "code": "the program is no longer called, or its owner runs it outside of the models",
    "sets": "the setting is in the connection's `config`, where it holds for all models, or "
    "the query itself says what it means",
    "fails": "the statement is written as the finding says, or gone",
}


def iterate_model_statements(model: Model) -> Iterator[tuple[str, str]]:
    """Yields (when, text) of the statements around a model's query."""
    for when, attribute in (
        ("pre", "pre_statements_"),
        ("post", "post_statements_"),
        ("on-virtual-update", "on_virtual_update_"),
    ):
        for item in getattr(model, attribute, None) or []:
            yield when, item.sql


@on_statement(STATEMENT, CODE, SETTING, STANDING)
def find_statement_effects(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds effects on others: of the statements of changed models, before_all and after_all."""
    for item in _judge_statements(inputs):
        if not item.in_prod:
            yield _observe_new(item, inputs)
        elif item.severity == "blocker":
            yield _observe_statement_in_prod(item, inputs)


def _judge_statements(inputs: RuleInputs) -> tuple[JudgedEffect, ...]:
    if inputs.judged is not None:
        return inputs.judged
    if not inputs.loaded:
        return ()
    changed = list_touched_models(inputs, iterate_pairs(inputs, ModelQueries()))
    after_and_before = ((after, before) for before, after in changed)
    return tuple(judge_statement_effects_of_models(after_and_before, inputs.default_dialect))


def _observe_new(item: JudgedEffect, inputs: RuleInputs) -> RuleObservation:
    slot = item.statement.slot
    severity: Severity = item.severity
    evidence = f"New or changed in {slot}: it {item.description}."
    if item.effect.action == "sets":
        evidence += _OF_THE_SESSION if slot != "after_all" else ""
        severity = severity if slot != "after_all" else "medium"
    elif item.environment == "prod":
        evidence += " It does so in prod, and not in a PR environment."
    elif slot in _AROUND:
        evidence += " It runs with every plan and every run."
    elif severity == "blocker":
        evidence += " It runs whenever the model is built, also in a PR environment."
    if severity == "blocker" and item.statement.model in inputs.from_base:
        severity = "high"
        evidence += (
            " The base branch has it already and prod has not; an apply is refused until prod has "
            "caught up."
        )
    return _make_observation(
        find_statement_rule(item),
        evidence,
        _CLEARS.get(item.effect.action, STATEMENT_IS_GONE),
        severity,
        item,
        inputs,
    )


def find_statement_rule(item: JudgedEffect) -> RuleSpec:
    """Finds the rule of a statement's effect."""
    if item.effect.action == "code":
        return CODE
    return (
        SETTING
        if item.effect.action in ("sets", "fails") and _is_spark_setting_statement(item)
        else STATEMENT
    )


def _is_spark_setting_statement(item: JudgedEffect) -> bool:
    return item.effect.kind.split()[0] == "SET"


def _observe_statement_in_prod(item: JudgedEffect, inputs: RuleInputs) -> RuleObservation:
    return _make_observation(
        STANDING,
        f"In {item.statement.slot}, as in prod already: it {item.description}.",
        "nothing to do; it is not this change's doing, but it runs when a PR environment is built",
        "low",
        item,
        inputs,
    )


def _make_observation(
    spec: RuleSpec,
    evidence: str,
    clears: str,
    severity: Severity,
    item: JudgedEffect,
    inputs: RuleInputs,
) -> RuleObservation:
    name = item.statement.model
    model = inputs.after.get(name) if name is not None else None
    words = item.statement.source.split()
    anchors = (" ".join(words[:3]), " ".join(words[:2]), *words[:1])
    path, line = (
        (None, None) if name is not None else find_statement_place(inputs, item.statement.source)
    )
    return RuleObservation(
        spec,
        evidence,
        clears,
        severity=severity,
        model=model,
        model_name=name,
        anchors=anchors,
        path=path,
        line=line,
        subject=make_statement_subject(item),
        effect=make_statement_effect(item),
    )


def make_statement_subject(item: JudgedEffect) -> tuple[str, ...]:
    """Makes the identity of a finding: the statement's slot, effect and object.

    The statement's text is part of it only if its effect is unknown.
    """
    effect, statement = item.effect, item.statement
    if effect.action == "unknown":
        return statement.slot, effect.action, effect.kind, statement.source
    target = ".".join(effect.target or ())
    parts = (statement.slot, effect.action, effect.kind, effect.detail, target)
    return tuple(part for part in parts if part)


def make_statement_effect(item: JudgedEffect) -> StatementEffect | None:
    """Makes the effect that a team's policy can allow: an action on an object with a known name.

    None if the name is unknown.
    """
    target = item.effect.target
    if target is None:
        return None
    return StatementEffect(action=item.effect.action, target=list(target))


def find_statement_place(inputs: RuleInputs, sql: str) -> tuple[str | None, int | None]:
    """Finds file and line of a statement in a changed configuration; two Nones if there is none."""
    words = sql.split()
    for path in inputs.changed_files or ():
        if PurePosixPath(path).name in _CONFIGS:
            text = inputs.read_text_after(path)
            if text is not None and words and words[0] in text:
                anchors = (" ".join(words[:4]), " ".join(words[:2]), *_AROUND)
                return path, find_anchor_line(text, anchors)
    return None, None


BY_POSITION = find_rule("insert-by-position")
_OF_OWN = frozenset({"this_model"})
ColumnNames = tuple[str, ...]


@dataclass(frozen=True)
class _MovedColumns:
    """The columns of a table, in their order, before and after the change."""

    name: str
    before: ColumnNames
    after: ColumnNames

    @property
    def move_description(self) -> str:
        """Describes the moved positions; empty if each column is at its old position.

        A column that only got another name receives the same values as before.
        """
        if len(self.before) != len(self.after):
            return (
                f"`{self.name}` has {len(self.after)} column{'s' if len(self.after) != 1 else ''}, "
                f"and had {len(self.before)}: Spark refuses the statement if the numbers "
                "differ, and otherwise writes values into other columns"
            )
        for number, (old, new) in enumerate(zip(self.before, self.after, strict=True), start=1):
            if old != new and (old in self.after or new in self.before):
                return (
                    f"column {number} of `{self.name}` is `{new}` now, and was `{old}`: the "
                    "statement writes values into other columns"
                )
        return ""


class _ProjectTables:
    """The tables of a project, by the names in its statements."""

    def __init__(self, inputs: RuleInputs) -> None:
        self._inputs = inputs

    @cached_property
    def _full_names(self) -> Mapping[str, str]:
        after = self._inputs.after
        short = {plain_name(self._inputs.names.short_name(fqn)): fqn for fqn in after}
        return short | {plain_name(fqn): fqn for fqn in after}

    def list_columns(self, table: exp.Table, holder: Model) -> _MovedColumns | None:
        """Lists the columns of a table in a statement of `holder`; None if a side is unknown."""
        fqn: str | None
        if isinstance(table.this, d.MacroVar):
            fqn = holder.fqn if table.this.name.lower() in _OF_OWN else None
        else:
            fqn = self._full_names.get(table_name(table))
        if fqn is None or fqn in self._inputs.from_base:
            return None
        sides = [
            _list_column_names_of_model(models.get(fqn))
            for models in (self._inputs.before, self._inputs.after)
        ]
        if sides[0] is None or sides[1] is None:
            return None
        return _MovedColumns(self._inputs.names.short_name(fqn), sides[0], sides[1])


def _list_column_names_of_model(model: Model | None) -> ColumnNames | None:
    types = list_known_types(model) if model is not None else None
    return tuple(name.lower() for name in types) if types else None


@on_project(BY_POSITION)
def check_inserts(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds unchanged statements around models whose tables have moved columns."""
    tables = _ProjectTables(inputs)
    for fqn, model in inputs.after.items():
        before = inputs.before.get(fqn)
        if before is None or not (written := _list_inserts(model)):
            continue
        known = {text for _, _, text in _list_inserts(before)}
        for slot, insert, text in written:
            if text in known and (why := _explain_moved_columns(insert, model, tables)):
                into = f"INSERT INTO {insert.this.sql(dialect=model.dialect)}"
                yield RuleObservation(
                    BY_POSITION,
                    f"`{into}` in {slot} names no columns, and {why}.",
                    "the statement names its columns, or says BY NAME",
                    model=model,
                    subject=(f"{into} in {slot}",),
                    anchors=(" ".join(text.split()[:3]), "INSERT"),
                )


def _list_inserts(model: Model) -> list[tuple[str, exp.Expr, str]]:
    """Lists (slot, statement, text) of each INSERT without columns around a model's query."""
    if not (getattr(model, "pre_statements_", None) or getattr(model, "post_statements_", None)):
        return []
    return [
        (slot, statement, statement.sql(dialect=model.dialect))
        for slot, statements in (
            ("pre-statement", model.pre_statements),
            ("post-statement", model.post_statements),
        )
        for statement in statements
        if isinstance(statement, exp.Insert)
        and isinstance(statement.this, exp.Table)
        and not statement.args.get("by_name")
    ]


def _explain_moved_columns(insert: exp.Expr, holder: Model, tables: _ProjectTables) -> str:
    """Explains why a statement now has another effect; empty if it has the same effect."""
    target = tables.list_columns(insert.this, holder)
    source, alone = _find_star_source(insert)
    read = tables.list_columns(source, holder) if source is not None else None
    if target is not None and read is not None and alone and target.after == read.after:
        return ""  # both moved in the same way
    # A star and a list of values are both matched with the target's columns by position.
    return next(
        (
            moved.move_description
            for moved in (target, read)
            if moved is not None and moved.move_description
        ),
        "",
    )


def _find_star_source(insert: exp.Expr) -> tuple[exp.Table | None, bool]:
    """Finds the table whose columns an INSERT takes by a star, and whether it takes only these."""
    if isinstance(insert.args.get("source"), exp.Table):  # INSERT INTO target TABLE source
        return insert.args["source"], True
    query = insert.expression
    if not isinstance(query, exp.Select) or query.args.get(FROM) is None:
        return None, False
    items, table = query.expressions, query.args[FROM].this
    stars = [item for item in items if isinstance(item, exp.Star) or item.is_star]
    if not stars or not isinstance(table, exp.Table):
        return None, False
    whole = isinstance(stars[0], exp.Star) and not any(stars[0].args.values())
    named = isinstance(stars[0], exp.Column) and stars[0].table == table.alias_or_name
    if not (named or (whole and not query.args.get("joins"))):
        return None, False
    return table, len(items) == 1
