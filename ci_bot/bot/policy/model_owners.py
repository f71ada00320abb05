"""The owners of a model: by the policy, and if that names none, by CODEOWNERS. Pure."""

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

MOST_CODEOWNERS_BYTES = 3 * 1024 * 1024  # GitHub loads no larger file


@dataclass(frozen=True)
class ModelOwnershipByPolicy:
    """The accounts that own a model.

    Attributes:
        logins: people, as GitHub spells them.
        teams: organization/team.
        place: the file and line that say so; "" if there is none.
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
        """Whether this login is named; GitHub ignores its case."""
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
    """Finds the owners of a model, according to its base commit.

    Args:
        path: The model's file, if the base commit has it, too; else None.
    """
    for entry in reversed(policy.owners):
        if matches.matches_prod_version(entry, model):
            return ModelOwnershipByPolicy.from_accounts(tuple(entry.github), entry.source_position)
    if path is None or codeowners is None:
        return ModelOwnershipByPolicy()
    line = find_owner_line(read_owner_lines(codeowners.text), path)
    if line is None:
        return ModelOwnershipByPolicy()
    # An e-mail address is no account, so it cannot be compared with a login.
    accounts = tuple(owner[1:] for owner in line.owners if owner.startswith("@"))
    return ModelOwnershipByPolicy.from_accounts(accounts, f"{codeowners.path} line {line.number}")


# Which files prove nothing about the models in them. Pure.
#
# CODEOWNERS, `paths` of a policy and comments are about files, and a pull request chooses the file
# of a model: it can move another team's model into a file of its author. So for a model that is not
# new, a file counts only if the base branch's version of the file has the same model.


_SQL_NAME = re.compile(r"\bname\s+([^\s,()]+)", re.IGNORECASE)

_PYTHON_NAME = re.compile(r"@model\(\s*(?:name\s*=\s*)?[\"']([^\"'\n]+)[\"']")
_QUOTES = str.maketrans("", "", "\"`'")


@dataclass(frozen=True)
class FilesOfOwnedModels:
    """The known facts about the files of a review.

    Attributes:
        new: files that the base branch does not have, and that contain no new model.
        foreign: models that are not new, each with a file whose old version had another model.
    """

    new: frozenset[str] = frozenset()
    foreign: frozenset[tuple[str, str]] = frozenset()

    def has_proof_for(self, model: str | None, path: str | None) -> bool:
        """Whether a file proves anything about a finding on a model, or on no model."""
        if path is None or path in self.new:
            return False
        return model is None or (model, path) not in self.foreign

    @classmethod
    def from_models(
        cls, models: Mapping[str, str], before: Mapping[str, str | None], *, new: frozenset[str]
    ) -> FilesOfOwnedModels:
        """Finds which files prove nothing about their models.

        Args:
            models: the file of each model that is not new.
            before: the old text of each file that differs; None if it is not available.
            new: see the attribute.
        """
        foreign = {
            (model, path)
            for model, path in models.items()
            if path in before and not does_file_name_owned_model(before[path], path, model)
        }
        return cls(new, frozenset(foreign))


def does_file_name_owned_model(text: str | None, path: str, model: str) -> bool:
    """Whether the text of a file names a model as its own.

    It does not see a name that is made when the file is loaded (a macro, a blueprint). If there is
    no name, the file's own path names the model, as SQLMesh infers it.
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
# An acceptance is about a rule and a model in its current version. It is valid as long as the
# model's fingerprint is the same, also if other changes are pushed. It never covers more than the
# owner saw.


_HEAVIEST_FIRST: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class AcceptancesByOwners:
    """The acceptances, and the current versions of the models.

    Attributes:
        fingerprints: of the changed models; "removed" for a removed one.
    """

    items: tuple[Acceptance, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_items(
        cls, items: Sequence[Acceptance], changes: Sequence[Change]
    ) -> AcceptancesByOwners:
        return cls(tuple(items), list_fingerprints_for_acceptances(changes))

    def find_acceptance(self, risk: Risk) -> Acceptance | None:
        """Returns the acceptance that covers a finding; None if there is none."""
        if not may_be_accepted_by_owner(risk):
            return None
        for item in reversed(self.items):
            if (item.rule, item.model) == (risk.rule, risk.model) and self._still_holds(item, risk):
                return item
        return None

    def find_fallen_acceptance(self, risk: Risk) -> Acceptance | None:
        """Returns an acceptance that was about a finding but no longer covers it; None if none."""
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
    """Returns each changed model's fingerprint; "removed" for a removed model."""
    known = {c.model: c.fingerprint for c in changes if c.fingerprint is not None}
    return known | {c.model: "removed" for c in changes if c.change == "removed"}


def may_be_accepted_by_owner(risk: Risk) -> bool:
    """Whether an owner may accept a finding: it has a model, does not block, and is weighable."""
    return risk.model is not None and risk.severity != "blocker" and risk.rule not in UNWEIGHED


def mark_accepted_by_owner(risk: Risk, item: Acceptance) -> Risk:
    """Returns the finding with the owner's acceptance."""
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
