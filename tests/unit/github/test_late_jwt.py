"""PyGithub without PyJWT's cryptography, which only a GitHub App's sign-in needs."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
from ci_bot.bot.github.transport import open_github_connection
open_github_connection("https://api.github.com", 5, None)
from github import Auth
print("cryptography" in sys.modules)
"""
_SIGNED = (
    _LOADED
    + """
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
print(Auth.AppAuth(1, key.decode()).create_jwt().count("."))
"""
)


def run_python(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_connection__loads_no_cryptography() -> None:
    assert run_python(_LOADED) == ["False"]


def test_jwt__is_loaded_when_an_app_signs_in() -> None:
    assert run_python(_SIGNED) == ["False", "2"]
