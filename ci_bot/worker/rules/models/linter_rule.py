"""The base of rules on one model: the class of a rule, the view of a project, file positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from sqlmesh.core.linter.rule import Position, Range, Rule, RuleViolation
from sqlmesh.core.model import Model
from sqlmesh.utils.errors import ConfigError

from ci_bot.protocol.rules import RuleRegistry, RuleSpec
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.project import GatewayFacts, list_gateways_of_project
from ci_bot.worker.rules.observation import (
    DescribeSubjects,
    RuleObservation,
    find_anchor_columns,
    find_anchor_line,
)
from ci_bot.worker.sql import ModelQueries, ModelQuery, ScopedSelect, plain_name, table_name

if TYPE_CHECKING:
    from sqlmesh.core.context import GenericContext

    from ci_bot.protocol.plan import Severity


@dataclass(frozen=True)
class ProjectView:
    """It takes the place of SQLMesh's context, and is made from one in a project's own linter."""

    models: Mapping[str, Model]
    variables: frozenset[str] | None = None
    row_counts: Mapping[str, int] = field(default_factory=dict)
    queries: ModelQueries = field(default_factory=ModelQueries)
    names: MessageNames = field(default_factory=lambda: MessageNames(None, None))
    gateways: Mapping[str, GatewayFacts] = field(default_factory=dict)

    def name_of_table(self, table: str) -> str:
        """Returns the name for reports of a table that a query reads, or of a model's full name."""
        model = self.by_table.get(plain_name(table))
        return self.names.short_name(model.fqn if model is not None else table)

    def name_of_source(self, select: ScopedSelect, alias: str) -> str:
        """Returns the name for reports of an alias: its table, or the alias if it is a query."""
        table = select.find_table(alias)
        return self.name_of_table(table_name(table)) if table is not None else alias

    def columns_of(self, table: str) -> frozenset[str] | None:
        """Returns the columns of a model's table in lower case; None if they are not known."""
        model = self.by_table.get(plain_name(table))
        types = model.columns_to_types if model is not None else None
        if not types or "*" in types:
            return None
        return frozenset(name.lower() for name in types)

    def get_model(self, fqn: str) -> Model | None:
        """Returns the model with this fully qualified name, or None."""
        return self.models.get(fqn)

    @cached_property
    def by_table(self) -> Mapping[str, Model]:
        """Maps full names to models, also without the default catalog, in plain lower case."""
        found = {
            plain_name(self.names.short_name(fqn)): model for fqn, model in self.models.items()
        }
        return found | {plain_name(fqn): model for fqn, model in self.models.items()}


class ModelRule(Rule):
    """A rule on one model. Subclasses define `spec` and `find_observations`."""

    spec: ClassVar[RuleSpec]

    def __init__(self, context: GenericContext[Any] | ProjectView) -> None:
        super().__init__(context)  # type: ignore[arg-type]  # a view takes the place of a context
        self.project = context if isinstance(context, ProjectView) else make_project_view(context)

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        """Finds the observations of this rule on `model`."""
        raise NotImplementedError

    def check_model(self, model: Model) -> list[RuleViolation] | None:
        """Returns the observations as violations with a range in the file; SQLMesh calls it.

        None if there are no observations.
        """
        found = [
            self.violation(
                observation.described_text,
                violation_range=find_observation_range(model, observation),
            )
            for observation in self.find_observations(model)
        ]
        return found or None

    @property
    def summary(self) -> str:
        return self.spec.title

    def query_of(self, model: Model) -> ModelQuery | None:
        """Returns the model's query, which all rules of a run share; None if it has none."""
        return self.project.queries.query_of(model)

    def make_observation(
        self,
        model: Model,
        evidence: str | DescribeSubjects,
        clears: str,
        *,
        subject: Iterable[str] = (),
        severity: Severity | None = None,
        anchors: tuple[str, ...] = (),
    ) -> RuleObservation:
        """Makes an observation of this rule on `model`."""
        return RuleObservation(
            self.spec, evidence, clears, severity, model, anchors, subject=tuple(subject)
        )


MODEL_RULES: RuleRegistry[type[ModelRule]] = RuleRegistry()
Kind = TypeVar("Kind", bound=type[ModelRule])


def on_model(kind: Kind) -> Kind:
    """Registers a class as a rule on one model, and returns it."""
    MODEL_RULES(kind.spec)(kind)
    return kind


def make_project_view(context: GenericContext[Any]) -> ProjectView:
    """Makes a view of a SQLMesh context, for projects that use the rules in their own linter."""
    models = getattr(context, "models", None) or getattr(context, "_models", {})
    config = getattr(context, "config", None)
    variables = frozenset(name.lower() for name in getattr(config, "variables", {}) or {})
    return ProjectView(
        dict(models),
        variables=variables if config is not None else None,
        names=MessageNames(getattr(context, "default_catalog", None), None),
        gateways=list_gateways_of_project(config, getattr(context, "gateway", None))
        if config
        else {},
    )


def refuse_policy(message: str) -> NoReturn:
    """Ends the linter with a message, as SQLMesh does for a wrong configuration.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(message)


def find_observation_range(model: Model, observation: RuleObservation) -> Range | None:
    """Finds the range of an observation in the model's file; None if the model has no file.

    The range has the units of the language server's protocol: lines and UTF-16 code units from 0.
    """
    path = getattr(model, "_path", None)
    if path is None or not Path(path).is_file():
        return None
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    line = observation.line or find_anchor_line(text, observation.anchors, model.name)
    if line is None:
        return None
    written = text.splitlines()[line - 1]
    first, last = find_anchor_columns(written, observation.anchors)
    return Range(
        start=Position(line=line - 1, character=_count_units(written[:first])),
        end=Position(line=line - 1, character=_count_units(written[:last])),
    )


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def is_computed_table(model: Model) -> bool:
    """Whether the model has its own table, and SQLMesh computes its rows."""
    return not (
        model.kind.is_view or model.kind.is_embedded or model.kind.is_external or model.kind.is_seed
    )
