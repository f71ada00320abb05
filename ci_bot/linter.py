"""ci-bot's rules on models for a project's own linter: `sqlmesh lint`, `sqlmesh plan`, the editor.

A project uses them all with one file in its directory `linter`:

    from ci_bot.linter import *  # noqa: F403 - SQLMesh looks for classes in the project's module

and names them in `linter.rules` or `linter.warn_rules`, each by its id without hyphens. They report
the same as in a review, and the team's policy leaves out the same. Positions are those of the
language server's protocol, so an editor marks the place and links to the rule's page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ci_bot.bot.policy import (
    FILE_NAME,
    MOST_POLICY_BYTES,
    Policy,
    PolicyFile,
    PolicyScopeMatches,
    PolicyWeighing,
    UnfitPolicy,
    compare_ignore_comments_for_policy,
    list_rules_that_policy_may_weigh,
    read_policy,
)
from ci_bot.protocol.review_report import Risk
from ci_bot.protocol.rules import find_rule_page
from ci_bot.worker.review import policy_scopes
from ci_bot.worker.rules import (
    MODEL_RULES,
    ModelRule,
    ProjectView,
    find_observation_range,
    make_project_view,
    refuse_policy,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import GenericContext
    from sqlmesh.core.linter.rule import Range
    from sqlmesh.core.model import Model

    from ci_bot.worker.rules import RuleObservation

# The policy and the view of a project, as long as its context has the same models.
_known: WeakKeyDictionary[Any, tuple[Any, ProjectView, _LintPolicy]] = WeakKeyDictionary()


class _LintPolicy:
    """The team's policy beside the project, for the models of one context.

    A pull request is judged by its base branch's policy. Here it is the working tree's, as in
    `ci-bot review` on a laptop without a base.
    """

    def __init__(self, context: GenericContext[Any], view: ProjectView) -> None:
        today = datetime.now(timezone.utc).date()
        files = []
        self.roots = [Path(root) for root in context.configs]
        for root in self.roots:
            path = root / FILE_NAME
            if path.is_file():
                with path.open("rb") as file:
                    content = file.read(MOST_POLICY_BYTES + 1)
                files.append(_read_policy_file_for_linter(content, today))
        policy = Policy(tuple(files))
        scopes = policy.list_scopes()
        about = {view.names.short_name(fqn) for fqn in view.models}
        answers = policy_scopes.evaluate_policy_scopes(
            context, scopes, before=view.models, after=view.models, about=about, names=view.names
        )
        for answer in answers:
            if answer.problem is not None:
                refuse_policy(f"The policy `{FILE_NAME}` cannot be used: {answer.problem}")
        self._weighing = PolicyWeighing(
            policy=policy, matches=PolicyScopeMatches.from_answers(scopes, answers), today=today
        )

    def weigh_observation(
        self, observation: RuleObservation, name: str, path: str | None, text: str
    ) -> Risk | None:
        """Returns what a rule found with the policy's weight and message; None if left out."""
        comments = compare_ignore_comments_for_policy(
            [(path or "", text, text)], list_rules_that_policy_may_weigh()
        )
        weighing = replace(self._weighing, comments=comments)
        risk = Risk(
            rule=observation.spec.id,
            severity=observation.weight,
            model=name,
            path=path or None,
            evidence=observation.described_text[:4_000],
            clears_when=observation.clears[:4_000],
        )
        return next(iter(weighing.weigh_risks([risk]).counting), None)


def _read_policy_file_for_linter(content: bytes, today: date) -> PolicyFile:
    """Reads the policy, or raises the failure that SQLMesh shows as a sentence."""
    try:
        return read_policy(
            content, path=FILE_NAME, rules=list_rules_that_policy_may_weigh(), today=today
        )
    except UnfitPolicy as error:
        refuse_policy(error.message)


def _find_view_and_policy(context: GenericContext[Any]) -> tuple[ProjectView, _LintPolicy]:
    """Finds view and policy of a context: SQLMesh makes each rule again for each model."""
    models = context._models if hasattr(context, "_models") else context.models
    found = _known.get(context)
    if found is None or found[0] is not models:
        view = make_project_view(context)
        found = (models, view, _LintPolicy(context, view))
        _known[context] = found
    return found[1], found[2]


def _make_rule(kind: type[ModelRule]) -> type[ModelRule]:
    """Makes the rule for SQLMesh's linter: with the policy, its weight, its page and a place."""

    class Linted(kind):  # type: ignore[misc,valid-type]  # each rule has one
        def __init__(self, context: GenericContext[Any]) -> None:
            view, self._policy = _find_view_and_policy(context)
            super().__init__(view)
            self.context = context

        def check_model(self, model: Model) -> Any:
            found = [self._violation_of(model, one) for one in self.find_observations(model)]
            return [one for one in found if one is not None] or None

        def _violation_of(self, model: Model, observation: RuleObservation) -> Any:
            path, text = _read_model_file_for_linter(model, self._policy.roots)
            name = self.project.names.short_name(model.fqn)
            risk = self._policy.weigh_observation(observation, name, path, text)
            if risk is None:
                return None
            place = find_observation_range(model, observation)
            message = f"{observation.described_text} ({_describe_weight_and_place(risk, place)})"
            if risk.message:
                message = f"{message} Your team says: {risk.message}"
            message = f"{message} `ci-bot explain {self.spec.id}` says more."
            return self.violation(message, violation_range=place)

        def get_definition_location(self) -> Any:
            """Returns the rule's page, which an editor opens."""
            location = super().get_definition_location()
            return location.model_copy(
                update={"file_path": str(find_rule_page(self.spec.id)), "start_line": 1}
            )

    Linted.__name__ = Linted.__qualname__ = kind.__name__
    Linted.__doc__ = kind.__doc__
    Linted.__module__ = __name__
    Linted.name = kind.spec.id.replace("-", "")
    return Linted


def _describe_weight_and_place(risk: Risk, place: Range | None) -> str:
    """Describes weight and place: SQLMesh prints the line only on a terminal, and no column."""
    if place is None:
        return risk.severity
    return f"{risk.severity}, line {place.start.line + 1}, column {place.start.character + 1}"


def _read_model_file_for_linter(model: Model, roots: list[Path]) -> tuple[str | None, str]:
    """Reads a model's file: its path below the project (None if there is none), and its text."""
    file = getattr(model, "_path", None)
    if file is None or not Path(file).is_file():
        return None, ""
    path = Path(file)
    inside = next((root for root in roots if path.is_relative_to(root)), None)
    text = path.read_text(encoding="utf-8", errors="replace")
    return (path.relative_to(inside).as_posix() if inside else path.name), text


def _list_rules() -> Iterator[tuple[str, type[ModelRule]]]:
    for kind in MODEL_RULES:
        yield kind.__name__, _make_rule(kind)


# Every rule on a model, by the name of its class.
RULES: Mapping[str, type[ModelRule]] = dict(_list_rules())

globals().update(RULES)
__all__ = ["RULES", *sorted(RULES)]  # noqa: PLE0604 - made of the registry
