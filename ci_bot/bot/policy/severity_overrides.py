"""The weight of a review's findings according to a team's policy. Pure.

A finding becomes lighter only if that is certain: by the policy of the base commit, for models that
an entry means in prod's version and in the pull request's. To make it heavier, one of both is
enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import get_args

from ci_bot.bot.policy.document import (
    EVERY_RULE,
    DiffEntry,
    ExposureEntry,
    IgnoreEntry,
    MessageEntry,
    OwnerEntry,
    PolicyEntry,
    ScopedEntry,
    SeverityEntry,
    StatementEntry,
    TrustEntry,
)
from ci_bot.bot.policy.model_owners import (
    AcceptancesByOwners,
    FilesOfOwnedModels,
    mark_accepted_by_owner,
)
from ci_bot.bot.policy.policy import (
    Policy,
    PolicyIgnoreComments,
    PolicyScopeMatches,
    does_policy_entry_name_rule,
    is_policy_entry_on_path,
    is_target_of_policy_entry,
)
from ci_bot.bot.policy.weighable_rules import CODE_ON_LOAD, PROTECTED, UNWEIGHED
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.review_report import Risk, Weighed
from ci_bot.protocol.rules import quote_name

_HEAVIEST_FIRST: tuple[Severity, ...] = get_args(Severity)
_EVIDENCE_LENGTH = 4_000  # the contract's limit


@dataclass(frozen=True)
class WeighedRisks:
    """Findings after the policy: those that count, and those that do not."""

    counting: tuple[Risk, ...]
    set_aside: tuple[Risk, ...]


@dataclass(frozen=True)
class ChangeAuthors:
    """The authors of a pull request, as GitHub reports them, and whether all of them may write.

    Attributes:
        writers: everybody who wrote or committed a part of it, if all of them are trusted.
        commits: how many commits it has.
        refused_because: why they are not all trusted, as a clause; None if they are.
    """

    writers: tuple[str, ...] = ()
    commits: int = 0
    refused_because: str | None = "nobody has asked GitHub who wrote it"


@dataclass(frozen=True)
class PolicyWeighing:
    """All facts that decide about weights.

    Attributes:
        today: in UTC; an ignore is still valid on its last day.
        loosens: whether entries may make anything lighter; False if the base is a branch that
            anybody can make.
        files: which files prove nothing about their models.
        comments: the ignore comments in the models' files.
        acceptances: those of the models' owners.
        authors: who wrote the change; GitHub is asked only if an entry of `trust` needs it.
    """

    policy: Policy = field(default_factory=Policy)
    matches: PolicyScopeMatches = field(default_factory=PolicyScopeMatches)
    today: date = date.min
    loosens: bool = True
    files: FilesOfOwnedModels = field(default_factory=FilesOfOwnedModels)
    comments: PolicyIgnoreComments = field(default_factory=PolicyIgnoreComments)
    acceptances: AcceptancesByOwners = field(default_factory=AcceptancesByOwners)
    authors: ChangeAuthors = field(default_factory=ChangeAuthors)

    def weigh_risks(self, risks: Iterable[Risk]) -> WeighedRisks:
        """Gives each finding its weight by the policy, and separates those that do not count."""
        counting: list[Risk] = []
        aside: list[Risk] = []
        for risk in risks:
            found = self._with_message(self._weigh_risk(risk))
            off = found.weighed is not None and found.weighed.by != "severity"
            (aside if off else counting).append(found)
        return WeighedRisks(tuple(counting), tuple(aside))

    def is_about(self, entry: ScopedEntry, model: str | None, path: str | None) -> bool:
        """Whether an entry may be about a model in a file."""
        return self.matches.matches_one_version(entry, model) and is_policy_entry_on_path(
            entry, path
        )

    def _with_message(self, risk: Risk) -> Risk:
        """Adds the team's message for readers, unless anybody could have written the policy."""
        if self.loosens:
            for entry in reversed(self.policy.messages):
                if does_policy_entry_name_rule(entry, risk.rule) and self.is_about(
                    entry, risk.model, risk.path
                ):
                    return risk.model_copy(update={"message": entry.message})
        return risk

    def _weigh_risk(self, risk: Risk) -> Risk:
        if risk.rule == CODE_ON_LOAD:
            return self._with_trust(risk)
        if risk.rule in UNWEIGHED:
            return risk
        if self.loosens:
            weighed = (
                self._find_ignore_entry(risk)
                or self._find_statement_entry(risk)
                or self._find_ignore_comment(risk)
            )
            if weighed is not None:
                return risk.model_copy(update={"weighed": weighed})
        found = self._with_severity(risk)
        off = found.weighed is not None and found.weighed.by == "off"
        item = self.acceptances.find_acceptance(found) if self.loosens and not off else None
        return found if item is None else mark_accepted_by_owner(found, item)

    def _with_trust(self, risk: Risk) -> Risk:
        """Makes the finding a note if the policy trusts all authors; otherwise it says why not."""
        entry = self.policy.trusts_writers
        if entry is None or not self.loosens:
            return risk
        refused = self.authors.refused_because
        if refused is not None:
            evidence = (
                f"{risk.evidence} The policy's `trust` does not cover this change: {refused}."
            )
            return risk.model_copy(update={"evidence": evidence[:_EVIDENCE_LENGTH]})
        found = _make_weighed(
            "severity", risk, entry, describe_authors_trusted_by_policy(self.authors)
        )
        return risk.model_copy(update={"severity": "low", "weighed": found})

    def _find_ignore_entry(self, risk: Risk) -> Weighed | None:
        for entry in self.policy.ignore:
            if entry.until >= self.today and self._is_ignored_by(entry, risk):
                until = entry.until.isoformat()
                return _make_weighed("ignore", risk, entry, entry.reason, until=until)
        return None

    def _is_ignored_by(self, entry: IgnoreEntry, risk: Risk) -> bool:
        return does_policy_entry_name_rule(entry, risk.rule) and self._matches_surely(entry, risk)

    def _find_statement_entry(self, risk: Risk) -> Weighed | None:
        effect = risk.effect
        if effect is None:
            return None
        for entry in self.policy.statements:
            if (
                effect.action in entry.does
                and is_target_of_policy_entry(entry.target, effect.target)
                and self.matches.matches_both_versions(entry, risk.model)
            ):
                return _make_weighed("statement", risk, entry, entry.reason)
        return None

    def _find_ignore_comment(self, risk: Risk) -> Weighed | None:
        comment = self.comments.find_comment(risk.rule, risk.path)
        if comment is None or not self.files.has_proof_for(risk.model, risk.path):
            return None
        return Weighed(
            by="comment",
            weight=risk.severity,
            reason=comment.reason,
            place=f"{comment.path} line {comment.line}",
        )

    def _with_severity(self, risk: Risk) -> Risk:
        for entry in reversed(self.policy.severity):
            if not does_policy_entry_name_rule(entry, risk.rule):
                continue
            lighter = entry.severity == "off" or _is_lighter(entry.severity, risk.severity)
            if EVERY_RULE in entry.rule and not lighter:
                if self.is_about(entry, risk.model, risk.path):
                    return risk  # an upper limit, and the finding is not above it
                continue
            if lighter and not self._may_be_lighter(entry, risk):
                continue
            if not lighter and not self.is_about(entry, risk.model, risk.path):
                continue
            return _apply_severity_policy_entry(entry, risk)
        return risk

    def _may_be_lighter(self, entry: SeverityEntry, risk: Risk) -> bool:
        return self.loosens and risk.rule not in PROTECTED and self._matches_surely(entry, risk)

    def _matches_surely(self, entry: ScopedEntry, risk: Risk) -> bool:
        if not self.matches.matches_both_versions(entry, risk.model) or not is_policy_entry_on_path(
            entry, risk.path
        ):
            return False
        return not entry.paths or self.files.has_proof_for(risk.model, risk.path)


def _apply_severity_policy_entry(entry: SeverityEntry, risk: Risk) -> Risk:
    if entry.severity == "off":
        return risk.model_copy(update={"weighed": _make_weighed("off", risk, entry, entry.reason)})
    if entry.severity == risk.severity:
        return risk
    weighed = _make_weighed("severity", risk, entry, entry.reason)
    return risk.model_copy(update={"severity": entry.severity, "weighed": weighed})


def _is_lighter(weight: Severity, than: Severity) -> bool:
    return _HEAVIEST_FIRST.index(weight) > _HEAVIEST_FIRST.index(than)


def _make_weighed(
    by: object,
    risk: Risk,
    entry: PolicyEntry | StatementEntry,
    reason: str,
    *,
    until: str | None = None,
) -> Weighed:
    return Weighed.model_validate(
        {
            "by": by,
            "weight": risk.severity,
            "reason": reason,
            "place": entry.source_position,
            "until": until,
        }
    )


# The entries of a policy in words; all names are in code marks.


_MOST_SHOWN = 5


def describe_policy_entry(entry: PolicyEntry) -> str:  # noqa: PLR0911 - one return per kind of entry
    """Describes an entry, without its reason and without a full stop.

    Raises:
        TypeError: there are no words for this kind of entry.
    """
    if isinstance(entry, SeverityEntry):
        return (
            f"{describe_findings_of_policy_entry(entry)} weighs "
            f"{describe_severity_of_policy_entry(entry)}"
        )
    if isinstance(entry, IgnoreEntry):
        return (
            f"{describe_findings_of_policy_entry(entry)} is ignored until {entry.until.isoformat()}"
        )
    if isinstance(entry, StatementEntry):
        return f"it is allowed {describe_statements_of_policy_entry(entry)}"
    if isinstance(entry, DiffEntry):
        return f"{describe_tolerance_of_policy(entry)} is tolerated"
    if isinstance(entry, OwnerEntry):
        return (
            f"{describe_models_of_policy_entry(entry)} belongs to "
            f"{describe_accounts_of_policy_entry(entry)}"
        )
    if isinstance(entry, TrustEntry):
        return describe_trust_of_policy_entry(entry)
    if isinstance(entry, MessageEntry):
        return f"the team says of {describe_findings_of_policy_entry(entry)}: {entry.message}"
    if isinstance(entry, ExposureEntry):
        return describe_exposure_policy_entry(entry)
    raise TypeError(f"no words for {type(entry).__name__}")


def describe_findings_of_policy_entry(entry: SeverityEntry | IgnoreEntry | MessageEntry) -> str:
    """Describes the findings that an entry is about."""
    rules = "every rule" if EVERY_RULE in entry.rule else list_names_in_policy_entry(entry.rule)
    on = f" on {describe_models_of_policy_entry(entry)}" if entry.asks_for_models else ""
    files = f" in {list_names_in_policy_entry(entry.paths)}" if entry.paths else ""
    return f"{rules}{on}{files}"


def describe_severity_of_policy_entry(entry: SeverityEntry) -> str:
    """Describes the severity that an entry gives."""
    if entry.severity == "off":
        return "nothing (off)"
    return f"{'at most ' if EVERY_RULE in entry.rule else ''}{entry.severity}"


def describe_statements_of_policy_entry(entry: StatementEntry) -> str:
    """Says what statements may do, to follow "it is allowed" or "it would be allowed"."""
    who = f" by statements of {list_names_in_policy_entry(entry.models)}" if entry.models else ""
    return (
        f"that something {' or '.join(entry.does)} {list_names_in_policy_entry(entry.target)}{who}"
    )


def describe_tolerance_of_policy(entry: DiffEntry) -> str:
    """Describes the difference that an entry tolerates."""
    return (
        f"a data diff of {entry.tolerance:.4%} of the rows of "
        f"{list_names_in_policy_entry(entry.models)}"
    )


def describe_accounts_of_policy_entry(entry: OwnerEntry) -> str:
    """Lists the accounts of an entry."""
    return " and ".join(f"`@{name}`" for name in entry.github)


def describe_trust_of_policy_entry(entry: TrustEntry) -> str:
    """Says whose code on load is a note by an entry."""
    if entry.code_on_load == "nobody":
        return "code that runs on load is trusted of nobody"
    return (
        "code that runs on load is trusted, if people with write permission wrote it in commits "
        "that GitHub has verified"
    )


def describe_exposure_policy_entry(entry: ExposureEntry) -> str:
    """Says who reads which models, or which file lists such readers."""
    owners = " and ".join(quote_name(name) for name in entry.owner or ())
    if entry.file is not None:
        clause = f", and asks {owners} where it names nobody on GitHub" if owners else ""
        return f"{quote_name(entry.file)} lists readers outside of the project{clause}"
    models = list_names_in_policy_entry(entry.reads)
    return f"{quote_name(entry.name or '')} of {owners} reads {models} from outside of the project"


def describe_authors_trusted_by_policy(authors: ChangeAuthors) -> str:
    """Says why the authors of a change are trusted."""
    one = authors.commits == 1
    commits = "its commit" if one else f"all {authors.commits} commits"
    return (
        f"{_join_logins(authors.writers)} may write to this repository, and GitHub has verified "
        f"{commits}; what this review says could still be forged by this code"
    )


def _join_logins(logins: Iterable[str]) -> str:
    shown = [f"`@{name}`" for name in logins]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def describe_models_of_policy_entry(entry: PolicyEntry) -> str:
    """Describes the models of an entry; "" if it is about all."""
    selected = getattr(entry, "models", None)
    owner = getattr(entry, "owner", None)
    names = list_names_in_policy_entry(selected) if selected else ""
    of = f"models of {list_names_in_policy_entry(owner)}" if owner else ""
    return f"{names}{' among the ' if names and of else ''}{of}"


def list_names_in_policy_entry(names: Iterable[str] | None) -> str:
    """Returns "`a`, `b` and 3 more", in the order of the file."""
    every = [f"`{name}`" for name in names or ()]
    rest = len(every) - _MOST_SHOWN
    return ", ".join(every[:_MOST_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
