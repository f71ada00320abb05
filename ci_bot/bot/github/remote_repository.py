"""Which repository on GitHub a checkout belongs to, outside of a workflow. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ci_bot.bot.actions import is_repository
from ci_bot.errors import BadInput

_PUBLIC = "github.com"
# https://host/owner/name.git, ssh://git@host/owner/name, git@host:owner/name.git
_REMOTE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/]*@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<name>[^/]+/[^/]+?)"
    r"(?:\.git)?/?"
)


def find_repository(environ: Mapping[str, str], origin: str | None) -> str:
    """`owner/name`: GITHUB_REPOSITORY where it is set, else what the origin's URL says.

    Raises:
        BadInput: neither names one, or the origin is on a host that GITHUB_API_URL does not name.
    """
    given = environ.get("GITHUB_REPOSITORY", "").strip()
    if given:
        if not is_repository(given):
            raise _make_unknown_repository_error("GITHUB_REPOSITORY is not owner/name.")
        return given
    remote = _REMOTE.fullmatch(origin or "")
    if remote is None or not is_repository(remote["name"]):
        raise _make_unknown_repository_error("The checkout's origin is no repository on GitHub.")
    if remote["host"].lower() != _PUBLIC and not environ.get("GITHUB_API_URL", "").strip():
        raise BadInput(
            f"The checkout's origin is on {remote['host']}, whose API is not known.",
            hint="Set GITHUB_API_URL, such as https://HOST/api/v3.",
            reason_code="unknown_api",
        )
    return remote["name"]


def find_api_url(environ: Mapping[str, str]) -> str:
    """The API's address: GITHUB_API_URL, else GitHub's own."""
    return environ.get("GITHUB_API_URL", "").strip() or "https://api.github.com"


def find_token(environ: Mapping[str, str]) -> str:
    """The token of the person at the terminal.

    Raises:
        BadInput: there is none.
    """
    for name in ("GITHUB_TOKEN", "GH_TOKEN"):
        if token := environ.get(name, "").strip():
            return token
    raise BadInput(
        "A sweep asks GitHub which pull requests are open, and there is no token to ask with.",
        hint="Set GITHUB_TOKEN, for example `GITHUB_TOKEN=$(gh auth token)`.",
        reason_code="missing_token",
    )


def _make_unknown_repository_error(what: str) -> BadInput:
    return BadInput(
        what,
        hint="Set GITHUB_REPOSITORY to owner/name.",
        reason_code="unknown_repository",
    )
