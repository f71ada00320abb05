"""GitHub's addresses: where the token may go, and to which repository a checkout belongs. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ci_bot.bot.actions import is_repository_in_event
from ci_bot.errors import BadInput


def check_github_api_url(url: str) -> str:
    """Returns `url` without a slash at its end, if a token may be sent there.

    Raises:
        BadInput: it is not https (http is allowed on a loopback address), or it has credentials.
    """
    parts = _parse_safe_github_url(url.strip())
    if parts is None or parts.query or parts.fragment:
        raise BadInput(
            "The API's URL is not one that the token may be sent to.",
            hint="GITHUB_API_URL must be https://HOST, as GitHub sets it for the run.",
            reason_code="bad_api_url",
        )
    return url.strip().rstrip("/")


def is_safe_github_download_url(url: str) -> bool:
    """Whether something may be fetched from `url`: https, or http on a loopback address."""
    return _parse_safe_github_url(url) is not None


def _parse_safe_github_url(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        encrypted = parts.scheme == "https" or (
            parts.scheme == "http" and _is_loopback(parts.hostname or "")
        )
        fine = encrypted and parts.hostname and parts.username is None and parts.port != 0
    except ValueError:
        return None
    return parts if fine else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Which certificate authorities are trusted, if the environment names other than the usual ones.


# In this order: first what `requests` knows, then what OpenSSL and so most other programs know.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def find_certificates_for_github(environ: Mapping[str, str]) -> str | None:
    """Returns the file or directory of trusted certificates; None for those of `requests`.

    Raises:
        BadInput: a variable names a path that does not exist.
    """
    for name in VARIABLES:
        value = environ.get(name, "").strip()
        if value:
            return _check_certificates_path(name, value)
    return None


def _check_certificates_path(name: str, value: str) -> str:
    path = Path(value)
    if path.is_dir() if name == "SSL_CERT_DIR" else path.exists():
        return value
    raise BadInput(
        f"{name} is {value!r}, and there is nothing of that name.",
        hint="A container action sees the workspace and no other directory of the runner: put the "
        f"certificates into a file below the workspace, and let {name} name that.",
        reason_code="no_certificates",
    )


_PUBLIC = "github.com"
# https://host/owner/name.git, ssh://git@host/owner/name, git@host:owner/name.git
_REMOTE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^@/]*@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<name>[^/]+/[^/]+?)"
    r"(?:\.git)?/?"
)


def find_github_repository(environ: Mapping[str, str], origin: str | None) -> str:
    """Returns `owner/name`: from GITHUB_REPOSITORY if it is set, else from the origin's URL.

    Raises:
        BadInput: neither names one, or the origin is on another host and GITHUB_API_URL is not set.
    """
    given = environ.get("GITHUB_REPOSITORY", "").strip()
    if given:
        if not is_repository_in_event(given):
            raise _make_unknown_repository_error("GITHUB_REPOSITORY is not owner/name.")
        return given
    remote = _REMOTE.fullmatch(origin or "")
    if remote is None or not is_repository_in_event(remote["name"]):
        raise _make_unknown_repository_error("The checkout's origin is no repository on GitHub.")
    if remote["host"].lower() != _PUBLIC and not environ.get("GITHUB_API_URL", "").strip():
        raise BadInput(
            f"The checkout's origin is on {remote['host']}, whose API is not known.",
            hint="Set GITHUB_API_URL, such as https://HOST/api/v3.",
            reason_code="unknown_api",
        )
    return remote["name"]


def find_github_api_url(environ: Mapping[str, str]) -> str:
    """Returns the API's address: GITHUB_API_URL, else GitHub's own."""
    return environ.get("GITHUB_API_URL", "").strip() or "https://api.github.com"


def find_github_token(environ: Mapping[str, str]) -> str:
    """Returns the token of the person at the terminal.

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
