"""The policy of a run: the entries of its files, and the findings and models that each is about."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain, islice

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    DiffEntry,
    ExposureEntry,
    IgnoreEntry,
    MessageEntry,
    OwnerEntry,
    PolicyEntry,
    PolicyFile,
    PolicyLimits,
    ScopedEntry,
    SeverityEntry,
    StatementEntry,
    TrustEntry,
)
from ci_bot.bot.policy.exposures import (
    PolicyExposure,
    list_exposure_entries,
    list_exposures_in_policy_entries,
)
from ci_bot.bot.policy.weighable_rules import PROTECTED, UNWEIGHED
from ci_bot.protocol.cost import Price
from ci_bot.protocol.reasons import OF_THE_BOT
from ci_bot.protocol.review_inputs import ModelScope, ScopedModels

ScopeKey = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Policy:
    """All entries, in the order of the files and of their lines.

    Attributes:
        listed: the exposures from the files that `exposures` names.
    """

    files: tuple[PolicyFile, ...] = ()
    listed: tuple[PolicyExposure, ...] = ()

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
    def messages(self) -> list[MessageEntry]:
        return list(chain.from_iterable(file.messages for file in self.files))

    @property
    def header(self) -> str | None:
        """The team's text above a review; if several files have one, the last counts."""
        return next(filter(None, (file.comment.header for file in reversed(self.files))), None)

    @property
    def footer(self) -> str | None:
        """The team's text below a review; if several files have one, the last counts."""
        return next(filter(None, (file.comment.footer for file in reversed(self.files))), None)

    @property
    def owners(self) -> list[OwnerEntry]:
        return list(chain.from_iterable(file.owners for file in self.files))

    @cached_property
    def exposures(self) -> list[PolicyExposure]:
        """The readers outside of the project."""
        return [*list_exposures_in_policy_entries(self.files), *self.listed]

    @cached_property
    def trust(self) -> list[TrustEntry]:
        return [file.trust for file in self.files if file.trust is not None]

    @property
    def trusts_writers(self) -> TrustEntry | None:
        """The entry that makes writers' code on load a note; None if any file says `nobody`."""
        if any(entry.code_on_load == "nobody" for entry in self.trust):
            return None
        return next(iter(self.trust), None)

    @property
    def entries(self) -> list[PolicyEntry]:
        return [
            *self.severity,
            *self.ignore,
            *self.statements,
            *self.data_diff,
            *self.owners,
            *self.trust,
            *self.messages,
            *list_exposure_entries(self.files),
        ]

    @property
    def limits(self) -> PolicyLimits:
        """The limits; if several files set one, the last counts."""
        return PolicyLimits().model_copy(
            update=_list_set_limits(file.limits for file in self.files)
        )

    @property
    def executor_hour_price(self) -> Price | None:
        prices = [file.comment.executor_hour_price for file in self.files]
        return next(
            (Price.parse_price(price) for price in reversed(prices) if price is not None), None
        )

    @property
    def personal_schemas(self) -> list[str] | None:
        """Schemas that may hold personal data; None if no file mentions them."""
        listed = [file.personal_data.schemas for file in self.files if file.personal_data]
        return sorted({name for names in listed for name in names}) if listed else None

    def list_scopes(self) -> list[ModelScope]:
        """Lists the questions to SQLMesh, each once."""
        keys = dict.fromkeys(
            key for entry in self.entries if any(key := make_scope_key_of_policy_entry(entry))
        )
        return [ModelScope(models=list(models), owners=list(owners)) for models, owners in keys]


def _list_set_limits(limits: Iterable[PolicyLimits]) -> dict[str, object]:
    found: dict[str, object] = {}
    for item in limits:
        found |= {name: value for name, value in item if value is not None}
    return found


def make_scope_key_of_policy_entry(entry: PolicyEntry) -> ScopeKey:
    """Returns the models and owners of an entry; the same key means the same question."""
    if isinstance(entry, ExposureEntry):
        return (), ()  # its `owner` is the person to ask
    models = getattr(entry, "models", None) or ()
    owners = getattr(entry, "owner", None) or ()
    return tuple(models), tuple(owners)


@dataclass(frozen=True)
class PolicyScopeMatches:
    """SQLMesh's answer: the models that each scope means.

    They are the models in prod's version of the project, and in the pull request's. A scope without
    an answer matches nothing.
    """

    known: Mapping[ScopeKey, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    @classmethod
    def from_answers(
        cls, scopes: Sequence[ModelScope], answers: Sequence[ScopedModels]
    ) -> PolicyScopeMatches:
        if len(scopes) != len(answers):  # the answer is not for these questions
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

    def matches_both_versions(self, entry: PolicyEntry, model: str | None) -> bool:
        """Whether an entry is about a model in both versions."""
        before, after = self._match_versions(entry, model)
        return before and after

    def matches_one_version(self, entry: PolicyEntry, model: str | None) -> bool:
        """Whether an entry is about a model in at least one version."""
        before, after = self._match_versions(entry, model)
        return before or after

    def matches_prod_version(self, entry: PolicyEntry, model: str | None) -> bool:
        """Whether an entry is about a model in prod's version."""
        return self._match_versions(entry, model)[0]

    def _match_versions(self, entry: PolicyEntry, model: str | None) -> tuple[bool, bool]:
        key = make_scope_key_of_policy_entry(entry)
        if not any(key):
            return True, True
        before, after = self.known.get(key, (frozenset(), frozenset()))
        return model in before, model in after


def does_policy_entry_name_rule(
    entry: SeverityEntry | IgnoreEntry | MessageEntry, rule: str
) -> bool:
    """Whether an entry is about a rule."""
    return rule in entry.rule or EVERY_RULE in entry.rule


def is_policy_entry_on_path(entry: ScopedEntry, path: str | None) -> bool:
    """Whether an entry is about a file, or about no file in particular."""
    if not entry.paths:
        return True
    return path is not None and any(fnmatchcase(path, pattern) for pattern in entry.paths)


def is_target_of_policy_entry(patterns: Iterable[str], target: Sequence[str]) -> bool:
    """Whether a table's name matches one of these, part by part: `audit.*` is no `prod.audit.x`."""
    return any(
        _does_model_pattern_match_parts(pattern.lower().split("."), target) for pattern in patterns
    )


def _does_model_pattern_match_parts(pattern: Sequence[str], target: Sequence[str]) -> bool:
    return len(pattern) == len(target) and all(map(fnmatchcase, target, pattern))


# `-- review: ignore[rule] reason` in the SQL of a model: read as text, before and after a change.
#
# A comment counts if the base branch already has it. A comment that a pull request adds would
# silence that pull request's own alarm, so it is only reported.


LONGEST_REASON = 500
MOST_IN_A_FILE = 100
_COMMENT = re.compile(r"--[ \t]*review:[ \t]*ignore\[([^\]\r\n]{0,500})\][ \t:]*([^\r\n]*)")


@dataclass(frozen=True)
class PolicyIgnoreComment:
    """One rule that a comment in a file ignores.

    Attributes:
        path, line: its place in the file.
        reason: "" if it gives none, and then it does not count.
    """

    rule: str
    reason: str
    path: str
    line: int


@dataclass(frozen=True)
class PolicyIgnoreComments:
    """The comments in a change's files: those that count, and those that are new.

    Attributes:
        counting: in both versions.
        added: only in the pull request's version.
    """

    counting: tuple[PolicyIgnoreComment, ...] = ()
    added: tuple[PolicyIgnoreComment, ...] = ()

    def find_comment(self, rule: str, path: str | None) -> PolicyIgnoreComment | None:
        """Returns the comment that makes this rule's findings in a file not count; None if none."""
        for item in self.counting:
            if item.rule == rule and item.path == path:
                return item
        return None


def find_ignore_comments_for_policy(text: str | None, path: str) -> Iterator[PolicyIgnoreComment]:
    """Yields the ignore comments of a file; none if there is no file."""
    for match in islice(_COMMENT.finditer(text or ""), MOST_IN_A_FILE):
        line = (text or "").count("\n", 0, match.start()) + 1
        reason = "".join(c if c.isprintable() else " " for c in match[2]).strip()
        reason = reason.removesuffix("*/").strip()[:LONGEST_REASON]
        for rule in filter(None, (name.strip() for name in match[1].split(","))):
            yield PolicyIgnoreComment(rule, reason, path, line)


def compare_ignore_comments_for_policy(
    files: Sequence[tuple[str, str | None, str | None]], rules: Container[str]
) -> PolicyIgnoreComments:
    """Returns which comments in some files count, and which the pull request adds.

    Args:
        files: path, text before, and text after the change; None if there is no such file.
        rules: the ids of all rules.
    """
    counting: list[PolicyIgnoreComment] = []
    added: list[PolicyIgnoreComment] = []
    for path, before, after in files:
        known = {
            item.rule: item
            for item in find_ignore_comments_for_policy(before, path)
            if may_ignore_comment_count(item, rules)
        }
        for item in find_ignore_comments_for_policy(after, path):
            if item.rule not in known:
                added.append(item)
            elif may_ignore_comment_count(item, rules):
                counting.append(item)
    return PolicyIgnoreComments(tuple(counting), tuple(added))


def may_ignore_comment_count(item: PolicyIgnoreComment, rules: Container[str]) -> bool:
    """Whether a comment can make a finding not count, once the base branch has it."""
    return explain_why_ignore_comment_never_counts(item, rules) is None


def explain_why_ignore_comment_never_counts(
    item: PolicyIgnoreComment, rules: Container[str]
) -> str | None:
    """Says why a comment will never count, as the end of a sentence; None if it can."""
    if not item.reason:
        return "it gives no reason"
    if item.rule not in rules:
        return OF_THE_BOT["unknown_rule"]
    if item.rule in UNWEIGHED:
        return UNWEIGHED[item.rule]
    if item.rule in PROTECTED:
        return f"{PROTECTED[item.rule]}; the policy can ignore it until a day"
    return None
