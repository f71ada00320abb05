"""The models that a policy's scopes and exposures select, as SQLMesh reads them."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.messages import AcceptAnswer, AcceptRequest, ScopesRequest
from ci_bot.protocol.review_inputs import (
    ExposedModel,
    ModelScope,
    ScopedModels,
    ScopesAnswer,
    SelectedModel,
)
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, extract_headline_of_error, report_times
from ci_bot.worker.project import load_project_alone, make_project_place, opening
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.runtime import WorkerPhaseClock
from ci_bot.worker.sql import list_known_types, plain_name
from ci_bot.worker.state_store import KEEP_DAYS, Ledger

if TYPE_CHECKING:
    from sqlmesh.core.context import Context, GenericContext
    from sqlmesh.core.model import Model


_LONGEST_PROBLEM = 300

Expand = Callable[[Sequence[str]], set[str]]


def evaluate_policy_scopes(
    context: GenericContext[Any],
    scopes: Sequence[ModelScope],
    *,
    before: Mapping[str, Model],
    after: Mapping[str, Model],
    about: Collection[str],
    names: MessageNames,
) -> list[ScopedModels]:
    """Lists the models of each scope, in both versions of the project.

    The change under review can give a model any tag and any owner. So a new model has none of them
    before the change, and a removed one keeps its own after it.

    Args:
        before, after: Models by fully qualified name: prod's, and the project's.
        about: The report names of the models to look for.
    """
    if not scopes:
        return []
    unclaimed = {
        name: model.copy(update={"tags": [], "owner": None})
        for name, model in after.items()
        if name not in before
    }
    sides = [
        _ReviewedProjectSide(context, {**before, **unclaimed}, scopes),
        _ReviewedProjectSide(context, {**before, **after}, scopes),
    ]
    return [_list_models_of_policy_scope(scope, sides, about, names) for scope in scopes]


def evaluate_policy_scopes_of_review(
    context: Context,
    scopes: Sequence[ModelScope],
    inputs: RuleInputs,
    changes_and_findings: Iterable[Any],
) -> list[ScopedModels]:
    """Evaluates the scopes of a review for the models in its report.

    Args:
        changes_and_findings: Changes and findings; each has a model, or None.
    """
    return evaluate_policy_scopes(
        context,
        scopes,
        before=inputs.before,
        after=inputs.after,
        about={
            inputs.names.short_name(item.model)
            for item in changes_and_findings
            if item.model is not None
        },
        names=inputs.names,
    )


def answer_policy_scopes_request(
    request: ScopesRequest, clock: WorkerPhaseClock, on_spark_start: Callable[[], None]
) -> ScopesAnswer:
    """Evaluates which scopes select a model of the project; without a model, checks that SQLMesh
    can read them.

    Raises:
        BadInput: the configuration cannot be read.
        NotLoaded: the project does not load.
    """
    if request.model is None:
        problems = (describe_unreadable_selection(scope.models) for scope in request.scopes)
        return ScopesAnswer(
            scoped=[ScopedModels(before=[], after=[], problem=problem) for problem in problems]
        )
    place = make_project_place(request, request.projects)
    context = load_project_alone(place, clock, on_spark_start, name="scopes")
    names = MessageNames(context.default_catalog, context.default_dialect)
    known = {names.short_name(fqn): model for fqn, model in context.models.items()}
    model = known.get(request.model)
    if model is None:
        near = difflib.get_close_matches(request.model, sorted(known), n=3)
        return ScopesAnswer(scoped=[], near=near)
    scoped = evaluate_policy_scopes(
        context,
        request.scopes,
        before=context.models,
        after=context.models,
        about={request.model},
        names=names,
    )
    path = Path(model._path) if model._path else None
    inside = path is not None and path.is_relative_to(place.repository)
    return ScopesAnswer(
        scoped=scoped,
        model=SelectedModel(
            model=request.model,
            path=str(path.relative_to(place.repository)) if path and inside else None,
            owner=model.owner,
            tags=sorted(model.tags),
        ),
    )


def describe_unreadable_selection(selections: Iterable[str]) -> str | None:
    """Describes why SQLMesh cannot read one of these selections; None if it can read all."""
    for text in selections:
        try:
            sqlmesh_compat.parse_sqlmesh_selection(text)
        except Exception as error:  # its parser and deep nesting each raise their own errors
            why = extract_headline_of_error(error).partition(": ")[0]
            return f"SQLMesh cannot read the selection `{text}`: {why}"[:_LONGEST_PROBLEM]
    return None


class _ReviewedProjectSide:
    """One version of the project."""

    def __init__(
        self,
        context: GenericContext[Any],
        models: Mapping[str, Model],
        scopes: Sequence[ModelScope],
    ) -> None:
        lineage = any("+" in text for scope in scopes for text in scope.models)
        self._models = models
        self._expand: Expand = sqlmesh_compat.make_sqlmesh_selector(
            context, models, lineage=lineage
        )

    def select_models_within(self, scope: ModelScope) -> set[str]:
        """Selects the models that the scope names, of its owners if it names any."""
        found = self._expand(scope.models) if scope.models else set(self._models)
        if not scope.owners:
            return found
        return {name for name in found if self._models[name].owner in scope.owners}


def _list_models_of_policy_scope(
    scope: ModelScope,
    sides: Sequence[_ReviewedProjectSide],
    about: Collection[str],
    names: MessageNames,
) -> ScopedModels:
    problem = describe_unreadable_selection(scope.models)
    if problem is None:
        try:
            before, after = (
                sorted(
                    name
                    for fqn in side.select_models_within(scope)
                    if (name := names.short_name(fqn)) in about
                )
                for side in sides
            )
            return ScopedModels(before=before, after=after)
        except Exception as error:  # SQLMesh does not know a kind of resource
            problem = extract_headline_of_error(error)[:_LONGEST_PROBLEM]
    return ScopedModels(before=[], after=[], problem=problem)


# An owner's acceptance goes into the ledger, which no pull request's review can change.


def write_acceptance_to_ledger(
    request: AcceptRequest, clock: WorkerPhaseClock, on_spark_start: Callable[[], None]
) -> AcceptAnswer:
    """Writes an acceptance into the ledger. Reads only the configuration, and no model.

    Raises:
        BadInput: the configuration is broken, or there is no state yet.
    """
    place = make_project_place(request, request.projects)
    with opening.open_project_state_to_write(place, on_spark_start, clock) as context:
        ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(context))
        ledger.prepare_tables()
        number = request.owner.pr_number or 0
        oldest = report_times.to_milliseconds(request.acceptance.at) - KEEP_DAYS * 86_400_000
        ledger.write_acceptance(
            request.owner.name,
            number,
            request.acceptance,
            forget_before=report_times.format_iso_in_message(oldest),
        )
        return AcceptAnswer(acceptances=ledger.list_acceptances(request.owner.name, number))


_MOST_NEAR = 3
# Names of models in one schema are similar for that reason alone.
_ALIKE = 0.8


def find_exposed_models(requested: Sequence[str], inputs: RuleInputs) -> list[ExposedModel]:
    """Finds the model of each name: the one with this name, or the only one that ends in it.

    Args:
        requested: Names as people write them: with or without the catalog, or the last part alone.
    """
    if not requested:
        return []
    ends: dict[str, list[str]] = defaultdict(list)
    known = {plain_name(fqn): fqn for fqn in (*inputs.before, *inputs.after)}
    for name in known:
        ends[name.rpartition(".")[2]].append(name)
    shown = sorted({inputs.names.short_name(fqn) for fqn in known.values()})
    return [_find_exposed_model(name, known, ends, shown, inputs) for name in requested]


def _find_exposed_model(
    requested: str,
    known: Mapping[str, str],
    ends: Mapping[str, Sequence[str]],
    shown: Sequence[str],
    inputs: RuleInputs,
) -> ExposedModel:
    plain = plain_name(requested)
    alike = ends.get(plain.rpartition(".")[2], ())
    found = [name for name in alike if f".{name}".endswith(f".{plain}")]
    called_so = [
        name for name in found if plain_name(inputs.names.short_name(known[name])) == plain
    ]
    names = [known[name] for name in called_so or found]
    if len(names) == 1:
        return ExposedModel(
            name=requested,
            model=inputs.names.short_name(names[0]),
            columns=_list_columns_of_both_versions(names[0], inputs),
        )
    several = sorted(inputs.names.short_name(fqn) for fqn in names)[:_MOST_NEAR]
    near = several or difflib.get_close_matches(requested, shown, n=_MOST_NEAR, cutoff=_ALIKE)
    return ExposedModel(name=requested, model=None, several=bool(several), near=near)


def _list_columns_of_both_versions(fqn: str, inputs: RuleInputs) -> list[str] | None:
    """Lists the columns of a changed model in both versions; None for any other, to save time."""
    if fqn not in inputs.direct | inputs.indirect | inputs.removed:
        return None
    sides = [
        _list_columns_for_policy_scope(models.get(fqn)) for models in (inputs.before, inputs.after)
    ]
    if None in sides:
        return None
    return list(dict.fromkeys(name for side in sides for name in side or ()))


def _list_columns_for_policy_scope(model: Model | None) -> Sequence[str] | None:
    types = list_known_types(model)
    return None if types is None else tuple(types)
