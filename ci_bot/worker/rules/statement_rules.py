"""SQL statements that change objects outside the environment, or load code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ci_bot.protocol.plan import Severity, StatementEffect
from ci_bot.protocol.rules import RuleSpec, find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import iterate_pairs, list_touched_models
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_statement
from ci_bot.worker.sql import ModelQueries
from ci_bot.worker.sql_effects import JudgedEffect, display_name, judge_models

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
    """Effects on others of the statements of changed models, and of before_all and after_all."""
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
    return tuple(judge_models(after_and_before, inputs.default_dialect))


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
    return SETTING if item.effect.action in ("sets", "fails") and _is_set(item) else STATEMENT


def _is_set(item: JudgedEffect) -> bool:
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
    """Makes the identity of a finding: the statement's slot, effect and object, without any
    text.
    """
    effect, statement = item.effect, item.statement
    if effect.action == "unknown":
        return statement.slot, effect.action, effect.kind, statement.source
    target = display_name(effect.target) if effect.target is not None else ""
    parts = (statement.slot, effect.action, effect.kind, effect.detail, target)
    return tuple(part for part in parts if part)


def make_statement_effect(item: JudgedEffect) -> StatementEffect | None:
    """Makes the effect that a team's policy can allow: an action on an object with a known name."""
    target = item.effect.target
    if target is None:
        return None
    return StatementEffect(action=item.effect.action, target=list(target))


def find_statement_place(inputs: RuleInputs, sql: str) -> tuple[str | None, int | None]:
    """Finds file and line of a statement in a changed configuration; None if it is in none."""
    words = sql.split()
    for path in inputs.changed_files or ():
        if PurePosixPath(path).name in _CONFIGS:
            text = inputs.read_text_after(path)
            if text is not None and words and words[0] in text:
                anchors = (" ".join(words[:4]), " ".join(words[:2]), *_AROUND)
                return path, find_anchor_line(text, anchors)
    return None, None
