"""Runs every rule on a change, each alone, and finds file and line of every observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.plan import SEVERITIES, Finding
from ci_bot.worker.project import GatewayFacts, ProjectConfigFacts
from ci_bot.worker.rules.changes import CHANGE_RULES, NEW_MODEL_RULES
from ci_bot.worker.rules.files import (
    FILE_RULES,
    MODEL_FILE_RULES,
    PROJECT_RULES,
    STATEMENT_FILE_RULES,
)
from ci_bot.worker.rules.files.unseen_files import find_unread_files
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair, iterate_pairs, list_touched_models
from ci_bot.worker.rules.model_rules import MODEL_RULES
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.observation import (
    RuleObservation,
    find_anchor_line,
    list_new_observations,
    make_finding,
)
from ci_bot.worker.rules.registry import CRASHED, ProjectRule
from ci_bot.worker.rules.statement_rules import STATEMENT_RULES
from ci_bot.worker.sql import ModelQueries

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

MOST_OF_ONE_RULE = 1_000
# The severities, highest first.


def find_project_findings(inputs: RuleInputs) -> list[Finding]:
    """Finds everything on a loaded project and its plan, in a stable order.

    A rule that fails becomes an info finding, `rule-crashed`, and the others still run. Findings
    that need only the files come from `find_file_findings`.
    """
    return place_findings(list_observations(inputs), inputs)


def find_file_findings(inputs: RuleInputs) -> list[Finding]:
    """Finds everything that needs only the two versions of a file, in a stable order.

    A rule that fails on a file is a high finding: a credential in it might not have been seen.
    """
    return place_findings(list_file_observations(inputs), inputs)


def find_model_file_findings(inputs: RuleInputs) -> list[Finding]:
    """Runs the rules that read files and models, for a project whose models are not known."""
    return place_findings(_run_project_rules(MODEL_FILE_RULES, inputs), inputs)


def find_statement_findings(inputs: RuleInputs) -> list[Finding]:
    """Judges the statements in the changed files, if there is no plan that can be trusted."""
    return place_findings(_run_file_rules(inputs, STATEMENT_FILE_RULES), inputs)


def place_findings(observations: Iterable[RuleObservation], inputs: RuleInputs) -> list[Finding]:
    """Makes findings of observations, each once, with its highest severity, in a stable order."""
    texts: dict[str, str | None] = {}
    found = [_place_observation(observation, inputs, texts) for observation in list(observations)]
    unique: dict[tuple[str | None, ...], Finding] = {}
    for f in sorted(found, key=lambda f: SEVERITIES.index(f.severity)):
        unique.setdefault((f.rule, f.model, f.path, f.subject), f)
    every = sorted(
        unique.values(),
        key=lambda f: (f.rule, f.model or "", f.path or "", f.line or 0, f.subject or ""),
    )
    return [
        f for _, group in groupby(every, lambda f: f.rule) for f in _limit_findings(list(group))
    ]


def _limit_findings(found: list[Finding]) -> list[Finding]:
    """Limits the findings of one rule to the most severe ones, with the number of the others.

    Thousands of changed files may have thousands of findings, and the bot refuses an answer that is
    too large.
    """
    if len(found) <= MOST_OF_ONE_RULE:
        return found
    heaviest = sorted(found, key=lambda f: SEVERITIES.index(f.severity))
    rest = heaviest[MOST_OF_ONE_RULE:]
    left_out = {id(f) for f in rest}
    summary = Finding(
        rule=rest[0].rule,
        severity=rest[0].severity,
        subject="not listed",
        evidence=f"{len(rest):,} more findings of this rule, not listed.",
        clears_when="the ones above are cleared first",
    )
    return [*(f for f in found if id(f) not in left_out), summary]


def _run_file_rules(inputs: RuleInputs, rules: Iterable[ProjectRule]) -> Iterator[RuleObservation]:
    for path in inputs.changed_files or ():
        every = inputs.changed_files or ()
        alone = replace(inputs, changed_files=(path,), all_changed_files=every)
        for rule in rules:
            for observation in _run_rule_safely(partial(rule, alone), _name_rule(rule), None):
                if observation.spec is CRASHED:
                    yield replace(observation, severity="high", path=path, line=1)
                else:
                    yield observation


def _run_project_rules(
    rules: Iterable[ProjectRule], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    for rule in rules:
        yield from _run_rule_safely(partial(rule, inputs), _name_rule(rule), None)


def list_file_observations(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Yields the observations of the rules that only need the two versions of a file."""
    yield from _run_file_rules(inputs, (find_unread_files, *FILE_RULES))


def list_observations(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Lists the observations of all other rules on a loaded project and its plan."""
    queries = ModelQueries(inputs.after, inputs.before)
    yield from _run_project_rules((*MODEL_FILE_RULES, *PROJECT_RULES), inputs)
    for observation in _run_project_rules(STATEMENT_RULES, inputs):
        # If a rule on statements failed silently, a statement that writes prod could pass.
        crashed = observation.spec is CRASHED
        yield replace(observation, severity="high") if crashed else observation
    # Models of edited files come first: if many models changed, a review has time to run only some
    # of them.
    edited = frozenset(inputs.changed_files or ())
    changed = sorted(
        _iterate_pairs_safely(inputs, queries),
        key=lambda pair: inputs.find_path(pair.after) not in edited,
    )
    for pair in changed:
        for change_rule in CHANGE_RULES:
            yield from _run_rule_safely(
                partial(change_rule, pair, inputs),
                _name_rule(change_rule),
                pair.after,
            )
    yield from _run_model_rules(inputs, changed, queries)


def _iterate_pairs_safely(inputs: RuleInputs, queries: ModelQueries) -> Iterator[ModelPair]:
    if inputs.loaded:
        yield from iterate_pairs(inputs, queries)


def _run_model_rules(
    inputs: RuleInputs, changed: list[ModelPair], queries: ModelQueries
) -> Iterator[RuleObservation]:
    if not inputs.loaded:
        return
    now = ProjectView(
        inputs.after,
        variables=_list_variables(inputs.config_after),
        row_counts=inputs.row_counts,
        queries=queries,
        names=inputs.names,
        gateways=inputs.config_after.gateways if inputs.config_after is not None else {},
    )
    then = ProjectView(
        inputs.before,
        variables=_list_variables(inputs.config_before or inputs.config_after),
        row_counts=inputs.row_counts,
        queries=queries,
        names=inputs.names,
        gateways=_list_gateways_before(inputs),
    )
    for rule_type in MODEL_RULES:
        new, old = rule_type(now), rule_type(then)
        for before, after in list_touched_models(inputs, changed):
            observations = list(
                _run_rule_safely(partial(new.find_observations, after), rule_type.spec.id, after)
            )
            if observations and before is not None:
                known = _run_rule_safely(
                    partial(old.find_observations, before), rule_type.spec.id, before
                )
                observations = list_new_observations(known, observations)
            yield from observations
    new_models = [after for before, after in list_touched_models(inputs, changed) if before is None]
    for new_rule in NEW_MODEL_RULES:
        for model in new_models:
            yield from _run_rule_safely(
                partial(new_rule, model, inputs), _name_rule(new_rule), model
            )


def _list_gateways_before(inputs: RuleInputs) -> Mapping[str, GatewayFacts]:
    config = inputs.config_before or inputs.config_after
    return config.gateways if config is not None else {}


def _list_variables(config: ProjectConfigFacts | None) -> frozenset[str] | None:
    return None if config is None else config.variables


def _name_rule(rule: Callable[..., Any]) -> str:
    return f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}"


def _run_rule_safely(
    run: Callable[[], Iterable[RuleObservation] | None], name: str, model: Model | None
) -> list[RuleObservation]:
    try:
        return list(run() or ())
    except Exception as error:  # this runs the project's own code, which may raise anything
        return [
            RuleObservation(
                CRASHED,
                f"{name} could not check this: {type(error).__name__}.",
                "nothing to do; please report it with the model's definition",
                model=model,
                subject=(name,),
            )
        ]


def _place_observation(
    observation: RuleObservation, inputs: RuleInputs, texts: dict[str, str | None]
) -> Finding:
    path, line = observation.path, observation.line
    if path is None and observation.written_in is not None:
        path = inputs.find_path(observation.written_in)
    if path is None and observation.model is not None:
        path = inputs.find_path(observation.model)
        if path is None:
            twin = inputs.after.get(observation.model.fqn)
            path = inputs.find_path(twin) if twin is not None else None
    if path is not None and line is None:
        if path not in texts:
            texts[path] = inputs.read_text_after(path)
        text = texts[path]
        if text is not None:
            name = observation.model.name if observation.model is not None else None
            line = find_anchor_line(text, observation.anchors, name)
    return make_finding(observation, inputs.names, path, line)
