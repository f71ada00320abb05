"""Where the stand-in, PyGithub or the description itself differs from the rest, with the reason for
each.

Everything else that disagrees with GitHub's OpenAPI description fails the test. A line that no
longer occurs is reported by `Conformance.unused()`, which the stand-in's own test asserts to be
empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# Not part of the REST description: GraphQL has a schema of its own, downloads come from a storage
# host.
NOT_REST = re.compile(r"/graphql|/_downloads/.*")

# GitHub takes slashes in these last parameters; path templates cannot say so. They are encoded
# before matching.
SLASHED = re.compile(
    r"^(/repos/[^/]+/[^/]+/(?:contents|git/ref|git/refs|git/matching-refs|compare|branches)/)(.+)$"
)

# GitHub answers these on every operation; the description lists them on some. Only the body's shape
# is checked.
UNDOCUMENTED_STATUSES = frozenset({401, 403, 404, 409, 422, 429})


@dataclass(frozen=True)
class Deviation:
    """A known difference. `message` is a regular expression over the whole text of the finding."""

    operation: str
    side: str
    message: str
    reason: str

    def covers(self, operation: str, side: str, message: str) -> bool:
        """Whether this line speaks about the finding."""
        return (operation, side) == (self.operation, self.side) and re.fullmatch(
            self.message, message, re.DOTALL
        ) is not None


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "GET /repos/{owner}/{repo}/branches/{branch}",
        "response",
        r"200: (\.: '(_links|protection)'|commit: '\w+') is a required property",
        "emulate's branch names the commit's sha and address only; nobody here reads more of it",
    ),
    Deviation(
        "GET /repos/{owner}/{repo}/commits/{ref}",
        "response",
        r"200: (author|committer): None is not valid under any of the given schemas",
        "GitHub sends null when the commit's e-mail is no user's; the description's nullable "
        "stands beside oneOf, where OpenAPI 3.0 gives it no effect",
    ),
    Deviation(
        "GET /repos/{owner}/{repo}/compare/{basehead}",
        "response",
        r"200: .*(author|committer): None is not valid under any of the given schemas",
        "the same null in the commits of a comparison",
    ),
    Deviation(
        "GET /repos/{owner}/{repo}/pulls/{pull_number}/commits",
        "response",
        r"200: .*(author|committer): None is not valid under any of the given schemas",
        "the same null in the commits of a pull request",
    ),
)


def apply_corrections(spec: dict[str, Any]) -> None:
    """Correct the description in place where it says less than GitHub means.

    `nullable: true` beside an `enum` without null: read strictly, OpenAPI 3.0 refuses null there,
    yet GitHub documents and sends it (`conclusion`, `state_reason`).
    """
    waiting: list[Any] = [spec]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("nullable") is True and None not in node.get("enum", [None]):
                node["enum"] = [*node["enum"], None]
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
