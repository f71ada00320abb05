"""Where the token may go, and from where an artifact may come. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ci_bot.errors import BadInput


def check_api_url(url: str) -> str:
    """`url` without a slash at its end, if a token may be sent there.

    Raises:
        BadInput: It is no https URL (http is fine on a loopback address), or carries credentials.
    """
    parts = _parse_safe_url(url.strip())
    if parts is None or parts.query or parts.fragment:
        raise BadInput(
            "The API's URL is not one that the token may be sent to.",
            hint="GITHUB_API_URL must be https://HOST, as GitHub sets it for the run.",
            reason_code="bad_api_url",
        )
    return url.strip().rstrip("/")


def is_safe_download_url(url: str) -> bool:
    """Whether something may be fetched from `url`: https, or http on a loopback address."""
    return _parse_safe_url(url) is not None


def _parse_safe_url(url: str) -> SplitResult | None:
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


# Which certificate authorities are trusted, where the environment names others than the usual.


# In this order: what `requests` knows, then what OpenSSL and with it most other programs know.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def find_trusted_certificates(environ: Mapping[str, str]) -> str | None:
    """The file or directory of trusted certificates; None: those that `requests` brings.

    Raises:
        BadInput: a variable names something that is not there.
    """
    for name in VARIABLES:
        value = environ.get(name, "").strip()
        if value:
            return _check_existing_path(name, value)
    return None


def _check_existing_path(name: str, value: str) -> str:
    path = Path(value)
    if path.is_dir() if name == "SSL_CERT_DIR" else path.exists():
        return value
    raise BadInput(
        f"{name} is {value!r}, and there is nothing of that name.",
        hint="A container action sees the workspace and no other directory of the runner: put the "
        f"certificates into a file below the workspace, and let {name} name that.",
        reason_code="no_certificates",
    )
