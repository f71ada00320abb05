"""Who owns a model: by the policy, and where that does not say, by CODEOWNERS. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import get_args

from ci_bot.bot.policy.policy import Policy, PolicyScopeMatches
from ci_bot.bot.policy.weighable_rules import UNWEIGHED
from ci_bot.file_patterns import find_owner_line, read_owner_lines
from ci_bot.protocol.plan import Change, Severity
from ci_bot.protocol.review_report import Acceptance, Risk, Weighed

MOST_CODEOWNERS_BYTES = 3 * 1024 * 1024  # GitHub loads no larger one


@dataclass(frozen=True)
class ModelOwnershipByPolicy:
    """The accounts that own a model.

    Attributes:
        logins: people, as GitHub spells them.
        teams: organization/team.
        place: file and line that say so; "" if nothing does.
    """

    logins: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    place: str = ""

    @classmethod
    def from_accounts(cls, accounts: tuple[str, ...], place: str) -> ModelOwnershipByPolicy:
        return cls(
            tuple(name for name in accounts if "/" not in name),
            tuple(name for name in accounts if "/" in name),
            place,
        )

    def names_person(self, login: str) -> bool:
        """Whether a person is named; GitHub ignores case."""
        return login.lower() in {name.lower() for name in self.logins}


@dataclass(frozen=True)
class CodeOwnersFile:
    path: str
    text: str


def find_ownership_by_policy(
    policy: Policy,
    matches: PolicyScopeMatches,
    model: str,
    path: str | None,
    codeowners: CodeOwnersFile | None,
) -> ModelOwnershipByPolicy:
    """Who owns a model, by what its base commit says.

    Args:
        path: The model's file, where the base commit has it, too.
    """
    for entry in reversed(policy.owners):
        if matches.matches_prod_version(entry, model):
            return ModelOwnershipByPolicy.from_accounts(tuple(entry.github), entry.source_position)
    if path is None or codeowners is None:
        return ModelOwnershipByPolicy()
    line = find_owner_line(read_owner_lines(codeowners.text), path)
    if line is None:
        return ModelOwnershipByPolicy()
    # An address is no account that could be compared with a login.
    accounts = tuple(owner[1:] for owner in line.owners if owner.startswith("@"))
    return ModelOwnershipByPolicy.from_accounts(accounts, f"{codeowners.path} line {line.number}")


# Which files prove nothing about the models in them. Pure.
#
# CODEOWNERS, `paths` of a policy and comments speak of files, and a pull request chooses in which
# file a model stands: it can take a model of another team's to a file of its author's. So a file
# counts for a model that is not new only where the base branch's version is of that model.


_SQL_NAME = re.compile(r"\bname\s+([^\s,()]+)", re.IGNORECASE)

_PYTHON_NAME = re.compile(r"@model\(\s*(?:name\s*=\s*)?[\"']([^\"'\n]+)[\"']")
_QUOTES = str.maketrans("", "", "\"`'")


@dataclass(frozen=True)
class FilesOfOwnedModels:
    """What is known of the files of a review.

    Attributes:
        new: files that the base branch does not have, and that hold no new model.
        foreign: models that are not new, with a file whose old version is not theirs.
    """

    new: frozenset[str] = frozenset()
    foreign: frozenset[tuple[str, str]] = frozenset()

    def has_proof_for(self, model: str | None, path: str | None) -> bool:
        """Whether a file says anything about a finding on a model, or on no model."""
        if path is None or path in self.new:
            return False
        return model is None or (model, path) not in self.foreign

    @classmethod
    def from_models(
        cls, models: Mapping[str, str], before: Mapping[str, str | None], *, new: frozenset[str]
    ) -> FilesOfOwnedModels:
        """
        Args:
            models: the file of each model that is not new.
            before: the old text of each file that differs; None where it is not to be had.
            new: as above.
        """
        foreign = {
            (model, path)
            for model, path in models.items()
            if path in before and not does_file_name_owned_model(before[path], path, model)
        }
        return cls(new, frozenset(foreign))


def does_file_name_owned_model(text: str | None, path: str, model: str) -> bool:
    """Whether a file names a model as its own, in letters.

    A name that is made when the file is loaded (a macro, a blueprint) is not seen. Without any, the
    file's own path names the model, as SQLMesh infers it.
    """
    if text is None:
        return False
    wanted = model.translate(_QUOTES).lower().split(".")
    if path.endswith(".py"):
        found = _PYTHON_NAME.findall(text)
    else:
        found = _SQL_NAME.findall(text.partition(";")[0])
    if not found:
        return list(PurePosixPath(path).with_suffix("").parts[-len(wanted) :]) == wanted
    return any(name.translate(_QUOTES).lower().split(".") == wanted for name in found)


# Findings that the owner of their model has accepted. Pure.
#
# An acceptance is about a rule and a model as it was. It holds as long as that model's fingerprint
# is the same, whatever else is pushed; and it never covers more than what was seen.


_HEAVIEST_FIRST: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class AcceptancesByOwners:
    """What was accepted, and the models as they are now.

    Attributes:
        fingerprints: of the changed models; a removed one has none.
    """

    items: tuple[Acceptance, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_items(
        cls, items: Sequence[Acceptance], changes: Sequence[Change]
    ) -> AcceptancesByOwners:
        return cls(tuple(items), list_fingerprints_for_acceptances(changes))

    def find_acceptance(self, risk: Risk) -> Acceptance | None:
        """The acceptance that covers a finding."""
        if not may_be_accepted_by_owner(risk):
            return None
        for item in reversed(self.items):
            if (item.rule, item.model) == (risk.rule, risk.model) and self._still_holds(item, risk):
                return item
        return None

    def find_fallen_acceptance(self, risk: Risk) -> Acceptance | None:
        """One that was about a finding, and is no longer."""
        if self.find_acceptance(risk) is not None:
            return None
        named = [i for i in self.items if (i.rule, i.model) == (risk.rule, risk.model)]
        return named[-1] if named else None

    def _still_holds(self, item: Acceptance, risk: Risk) -> bool:
        same = self.fingerprints.get(item.model) == item.fingerprint
        seen = (risk.subject or "") in item.subjects
        return (
            same
            and seen
            and _rank_accepted_severity(risk.severity) >= _rank_accepted_severity(item.severity)
        )


def list_fingerprints_for_acceptances(changes: Sequence[Change]) -> dict[str, str]:
    """What each changed model is now; a removed one is `removed`."""
    known = {c.model: c.fingerprint for c in changes if c.fingerprint is not None}
    return known | {c.model: "removed" for c in changes if c.change == "removed"}


def may_be_accepted_by_owner(risk: Risk) -> bool:
    """Whether an owner may accept a finding: it is about a model, and does not block."""
    return risk.model is not None and risk.severity != "blocker" and risk.rule not in UNWEIGHED


def mark_accepted_by_owner(risk: Risk, item: Acceptance) -> Risk:
    """The finding with who accepted it."""
    return risk.model_copy(
        update={
            "weighed": Weighed(
                by="acceptance",
                weight=risk.weighed.weight if risk.weighed else risk.severity,
                reason=item.reason,
                who=item.by,
                at=item.at,
            )
        }
    )


def _rank_accepted_severity(severity: Severity) -> int:
    return _HEAVIEST_FIRST.index(severity)
