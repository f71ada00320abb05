"""Passwords that only a name gives away, in running text: `password=...`, `"token": "..."`.

For texts that are to be shown. SQL and YAML that only speak of passwords must come through; what
is a finding in a file is a question of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_bot.secrets.literals import Likeness, is_random, likeness, stands_for_one
from ci_bot.secrets.names import Holds, holds
from ci_bot.secrets.shapes import Span

# Most lines have none of these, and the patterns below look at every place of a line.
_MARKS = (
    "pass", "pwd", "secret", "token", "credential", "key", "sig", "sharedaccess", "auth",
    "kennwort", "wachtwoord", "contrase",
)  # fmt: skip
# An object between a name and its value: `"secret": {"value": "..."}`.
OBJECT_OF_VALUE = (
    r"""(?:\{\s{0,3}\\{0,3}["']?(?:value|plain|plaintext|raw|default)\\{0,3}["']?"""
    r"""\s{0,3}[:=]\s{0,3})?"""
)
_PAIR = re.compile(
    rf"""
    (?P<key> passwords? | passwd | passphrase | \bpwd | secret | token | credentials?
      | passwort | kennwort | wachtwoord | contrase[ñn]a | mot[_ ]de[_ ]passe
      | (?:(?<=[_.\-])|^[\s+>\-]{{0,40}})pass(?![a-z])
      | (?:api|access|private|secret|client|account|encryption)[._\-]?(?:access[._\-]?)?
        (?:key|secret)(?:[._\-]?id)?
      | \baccount\.key\.[\w.\-]{{1,100}} | sharedaccess(?:key|signature)
      | \bsig (?=\s?=\s?[\w%+/]{{30}}) | (?<![a-z])auth
    )
    (?:[_.\-](?:base|value|raw|b64|base64|prod|production|dev|test|staging|old|new|ro|rw|\d{{1,3}}))?
    \\{{0,3}}["'`]? (?P<gap>\s{{0,3}}) (?P<sign>=>|:=|:-|==|=|:) (?P<space>\s{{0,3}})
    {OBJECT_OF_VALUE}
    (?: (?P<quote>\\{{0,3}}["'])(?P<quoted>(?:(?!(?P=quote)).){{3,500}})(?P=quote)
      | ["'`]?(?P<bare>[^\s"'`,;&)}}\]|<>\\]{{3,500}}) )  # also where its quote has no end
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A setting and its value as two arguments: `.config("secret.key", "...")`, `getenv("P", "...")`.
_ARGUMENTS = re.compile(
    r"""(?P<mark>["'])(?P<name>[\w.\-]{1,200})(?P=mark)\s{0,3},\s{0,3}"""
    r"""(?P<quote>["'])(?P<value>[^"'\n]{4,500})(?P=quote)"""
)
_ALWAYS = re.compile(r"pass|pwd|kennwort|wachtwoord|contrase|sig$|sharedaccess", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\(?")
_RANDOM_MIN = 8


def pair_spans(line: str) -> Iterator[Span]:
    """Where in one line a value stands that its name says is a secret."""
    lowered = line.lower()
    if not any(mark in lowered for mark in _MARKS):
        return
    match = _PAIR.search(line)
    while match is not None:
        group = "bare" if match["quoted"] is None else "quoted"
        if _is_secret(match, group):
            yield match.span(group)
            match = _PAIR.search(line, match.end())
        else:  # `${PASSWORD:-secret}`: the next pair may stand in the value of this one
            match = _PAIR.search(line, match.end("sign"))
    for match in _ARGUMENTS.finditer(line):
        kind = holds(match["name"])
        if kind is not Holds.NOTHING and (
            likeness(match["value"], made_by_people=kind is Holds.PASSWORD) is Likeness.YES
        ):
            yield match.span("value")


def _is_secret(match: re.Match[str], group: str) -> bool:
    """Whether the value of `key sign value` is a secret, or only SQL that looks like one."""
    key, sign, value = match["key"], match["sign"], match[group]
    if stands_for_one(value) or (key.lower() == "auth" and not is_random(value)):
        return False
    password = _ALWAYS.search(key) is not None
    compares = sign == "==" or (bool(match["space"]) and sign == "=")
    if group == "quoted":
        # `WHERE token = 'page_view'`: a word, and not what a machine draws.
        return password or not compares or any(char.isdigit() for char in value)
    name = value.rstrip("(").rsplit(".", 1)[-1].lower()
    if _NAME.fullmatch(value) and (key.lower() in name or "." in value or value.endswith("(")):
        return False  # `on a.token = b.token`, `token=token`, `password = get(...)`
    if password:
        return True
    long = len(value) >= _RANDOM_MIN
    if compares or sign == ":":
        # `token: daily` and `token = id` are prose, YAML or SQL; a token is long and has digits.
        return long and any(char.isdigit() for char in value) and not value.isdigit()
    return long or not value.isdigit()
