"""What the name of a setting, a variable or a column says about its value."""

from __future__ import annotations

import re
from enum import Enum, auto

# "DBPassword" and "db_password" have the same words.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
# The last words of a name that say whose or which, and not what.
_WHICH = frozenset({
    "prod", "production", "dev", "test", "stage", "staging", "ci", "main", "default", "old",
    "new", "ro", "rw", "value", "plain", "string", "raw", "b64", "base64", "encoded", "base",
})  # fmt: skip
# Also as the people of a project say it: German, Dutch, Spanish, French ("mot de passe").
_PASSWORD = re.compile(
    r"\w*(?:password|passwd|passphrase|passcode|pwd|passwort|kennwort|wachtwoord|contrasena"
    r"|motdepasse)|pass|pw"
)
_TOKEN = re.compile(
    r"\w*(?:secret|token|apikey|accesskey|secretkey|privatekey|authkey)|credentials?|jwt|pat|sas|auth"
)
# A "key" is a credential only with one of these before it: data has keys of its own.
_KEYS = frozenset({
    "api", "access", "secret", "private", "account", "encryption", "signing", "auth", "client",
    "master", "shared", "storage", "session", "subscription", "app",
})  # fmt: skip
_STORAGE_ACCOUNT = re.compile(r"account[._]key[._]\w", re.IGNORECASE)


class SettingContent(Enum):
    """What a setting holds, by its name."""

    PASSWORD = auto()  # made by people, so words and digits are enough
    TOKEN = auto()  # made by machines, so it looks random
    NOTHING = auto()


def split_name_words(name: str) -> list[str]:
    """The words of `name` in lower case, whether they stand in camel, snake or kebab case."""
    parts = _SEPARATORS.split(_HUMP.sub(" ", name))
    return [part.lower() for part in parts if part]


def classify_setting(name: str) -> SettingContent:
    """What a setting called `name` holds. What counts is what is named last.

    So a `password_hash`, a `token_count` and a `passport` hold nothing, and neither does a column
    of `tokens`.
    """
    if _STORAGE_ACCOUNT.search(name):
        return SettingContent.TOKEN
    found = split_name_words(name)
    while len(found) > 1 and (found[-1] in _WHICH or found[-1].isdigit()):
        found.pop()
    if not found:
        return SettingContent.NOTHING
    last, before = found[-1], found[-2] if len(found) > 1 else ""
    if _PASSWORD.fullmatch(last) or (last, before) == ("passe", "de"):
        return SettingContent.PASSWORD
    if _TOKEN.fullmatch(last) or (last == "key" and before in _KEYS):
        return SettingContent.TOKEN
    return SettingContent.NOTHING


# Where a value is known, taking too much for a secret costs a `***` only: so any word counts.
_SUSPECT = frozenset({
    "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "pw", "pass", "secret",
    "secrets", "token", "tokens", "credential", "credentials", "creds", "apikey", "dsn", "pat",
    "sas", "jwt", "bearer", "signature", "sig", "auth", "authkey", "otp", "netrc",
    "pgpass", "key", "keys", "keystore", "truststore", "webhook",
})  # fmt: skip
_SUSPECT_PART = re.compile(
    r"passw|passphrase|kennwort|wachtwoord|contrase|motdepasse|secret|token(?!iz)|credential|apikey|accesskey|privatekey|secretkey"
)
# Named last, these say that the value is a place or a switch.
_PLACES = frozenset({
    "file", "path", "dir", "directory", "url", "uri", "endpoint", "host", "port", "enabled",
    "disabled", "type", "algorithm", "provider", "scope", "class", "version", "ttl", "timeout",
    "interval", "sock", "socket", "id", "email", "name", "user", "username",
})  # fmt: skip


def is_suspect(name: str) -> bool:
    """Whether the value of a variable or a member of this name is to be taken for a secret.

    Args:
        name: Of a variable of the environment, or of a member of a structured value.
    """
    found = split_name_words(name)
    if not found:
        return False
    if found[-2:] == ["key", "id"] and "access" not in found:
        return True  # a service account's private_key_id names a key that is still valid
    if found[-1] in _PLACES:
        return False
    return any(word in _SUSPECT or _SUSPECT_PART.search(word) for word in found)
