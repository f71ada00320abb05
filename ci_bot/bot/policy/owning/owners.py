"""Who owns a model: by the policy, and where that does not say, by CODEOWNERS. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ci_bot.bot.policy.owning.codeowners import owners_of
from ci_bot.bot.policy.policy import Matches, Policy


@dataclass(frozen=True)
class Ownership:
    """The accounts that own a model.

    Attributes:
        logins: people, as GitHub spells them.
        teams: organization/team.
        place: file and line that say so; "" where nothing does.
    """

    logins: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    place: str = ""

    @classmethod
    def of(cls, accounts: tuple[str, ...], place: str) -> Ownership:
        return cls(
            tuple(name for name in accounts if "/" not in name),
            tuple(name for name in accounts if "/" in name),
            place,
        )

    def has(self, login: str) -> bool:
        """Whether a person is named; GitHub ignores case."""
        return login.lower() in {name.lower() for name in self.logins}


@dataclass(frozen=True)
class CodeOwnersFile:
    path: str
    text: str


def ownership(
    policy: Policy,
    matches: Matches,
    model: str,
    path: str | None,
    codeowners: CodeOwnersFile | None,
) -> Ownership:
    """Who owns a model, by what its base commit says.

    Args:
        path: The model's file, where the base commit has it, too.
    """
    for entry in reversed(policy.owners):
        if matches.before(entry, model):
            return Ownership.of(tuple(entry.github), entry.place)
    if path is None or codeowners is None:
        return Ownership()
    found = owners_of(codeowners.text, path)
    if found is None:
        return Ownership()
    return Ownership.of(found.accounts, f"{codeowners.path} line {found.line}")
