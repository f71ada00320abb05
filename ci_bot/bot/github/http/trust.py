"""Which certificate authorities are trusted, where the environment names others than the usual."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ci_bot.errors import BadInput

# In this order: what `requests` knows, then what OpenSSL and with it most other programs know.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def trusted(environ: Mapping[str, str]) -> str | None:
    """The file or directory of trusted certificates; None: those that `requests` brings.

    Raises:
        BadInput: a variable names something that is not there.
    """
    for name in VARIABLES:
        value = environ.get(name, "").strip()
        if value:
            return _existing(name, value)
    return None


def _existing(name: str, value: str) -> str:
    path = Path(value)
    if path.is_dir() if name == "SSL_CERT_DIR" else path.exists():
        return value
    raise BadInput(
        f"{name} is {value!r}, and there is nothing of that name.",
        hint="A container action sees the workspace and no other directory of the runner: put the "
        f"certificates into a file below the workspace, and let {name} name that.",
        reason_code="no_certificates",
    )
