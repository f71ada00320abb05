"""The policy of a run: the entries of its files, and which findings and models each is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    DiffEntry,
    Entry,
    IgnoreEntry,
    OwnerEntry,
    PolicyFile,
    PolicyLimits,
    ScopedEntry,
    SeverityEntry,
    StatementEntry,
)
from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.policy.scopes import ModelScope, ScopedModels

ScopeKey = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Policy:
    """All entries, in the order of the files and of the lines in them."""

    files: tuple[PolicyFile, ...] = ()

    @cached_property
    def severity(self) -> list[SeverityEntry]:
        return list(chain.from_iterable(file.severity for file in self.files))

    @cached_property
    def ignore(self) -> list[IgnoreEntry]:
        return list(chain.from_iterable(file.ignore for file in self.files))

    @cached_property
    def statements(self) -> list[StatementEntry]:
        return list(chain.from_iterable(file.statements for file in self.files))

    @property
    def data_diff(self) -> list[DiffEntry]:
        return list(chain.from_iterable(file.data_diff for file in self.files))

    @property
    def owners(self) -> list[OwnerEntry]:
        return list(chain.from_iterable(file.owners for file in self.files))

    @property
    def entries(self) -> list[Entry]:
        return [*self.severity, *self.ignore, *self.statements, *self.data_diff, *self.owners]

    @property
    def limits(self) -> PolicyLimits:
        """Of several files the last that sets a limit counts."""
        return PolicyLimits().model_copy(update=_set(file.limits for file in self.files))

    @property
    def executor_hour_price(self) -> Price | None:
        prices = [file.comment.executor_hour_price for file in self.files]
        return next((Price.parse(price) for price in reversed(prices) if price is not None), None)

    @property
    def personal_schemas(self) -> list[str] | None:
        """Schemas that may hold personal data; None where no file speaks of them."""
        told = [file.personal_data.schemas for file in self.files if file.personal_data]
        return sorted({name for names in told for name in names}) if told else None

    def scopes(self) -> list[ModelScope]:
        """What has to be asked of SQLMesh, each question once."""
        keys = dict.fromkeys(key for entry in self.entries if any(key := scope_key(entry)))
        return [ModelScope(models=list(models), owners=list(owners)) for models, owners in keys]


def _set(limits: Iterable[PolicyLimits]) -> dict[str, object]:
    found: dict[str, object] = {}
    for item in limits:
        found |= {name: value for name, value in item if value is not None}
    return found


def scope_key(entry: Entry) -> ScopeKey:
    """The models and owners of an entry; two entries with the same ask the same."""
    models = getattr(entry, "models", None) or ()
    owners = getattr(entry, "owner", None) or ()
    return tuple(models), tuple(owners)


@dataclass(frozen=True)
class Matches:
    """What SQLMesh answered: per scope the models that it means, by prod's version of the project
    and by the pull request's. Nothing matches a scope that was not answered.
    """

    known: Mapping[ScopeKey, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, scopes: Sequence[ModelScope], answers: Sequence[ScopedModels]) -> Matches:
        if len(scopes) != len(answers):  # whoever answered did not answer what was asked
            return cls()
        return cls(
            {
                (tuple(scope.models), tuple(scope.owners)): (
                    frozenset(answer.before),
                    frozenset(answer.after),
                )
                for scope, answer in zip(scopes, answers, strict=True)
            }
        )

    def surely(self, entry: Entry, model: str | None) -> bool:
        """Whether an entry is about a model by both versions."""
        before, after = self._of(entry, model)
        return before and after

    def perhaps(self, entry: Entry, model: str | None) -> bool:
        """Whether it is by one of them."""
        before, after = self._of(entry, model)
        return before or after

    def before(self, entry: Entry, model: str | None) -> bool:
        """Whether it is by prod's."""
        return self._of(entry, model)[0]

    def _of(self, entry: Entry, model: str | None) -> tuple[bool, bool]:
        key = scope_key(entry)
        if not any(key):
            return True, True
        before, after = self.known.get(key, (frozenset(), frozenset()))
        return model in before, model in after


def names_rule(entry: SeverityEntry | IgnoreEntry, rule: str) -> bool:
    """Whether an entry is about a rule."""
    return rule in entry.rule or EVERY_RULE in entry.rule


def is_on_path(entry: ScopedEntry, path: str | None) -> bool:
    """Whether an entry is about a file, or about none in particular."""
    if not entry.paths:
        return True
    return path is not None and any(fnmatchcase(path, pattern) for pattern in entry.paths)


def is_target(patterns: Iterable[str], target: Sequence[str]) -> bool:
    """Whether a table's name, part by part, is one of these: `audit.*` is no `prod.audit.x`."""
    return any(_each_part(pattern.lower().split("."), target) for pattern in patterns)


def _each_part(pattern: Sequence[str], target: Sequence[str]) -> bool:
    return len(pattern) == len(target) and all(map(fnmatchcase, target, pattern))
