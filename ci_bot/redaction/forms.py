"""A known secret in all the forms in which programs print it."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

# Shorter values are words ("prod", "spark"), and taking them out everywhere would take the text
# with them. They still go where they stand alone, and where a shape shows that they are a password.
SHORTEST_ANYWHERE = 6
SHORTEST_WORD = 4
_ORDINARY_WORDS = frozenset(
    (
        *(
            "admin",
            "base",
            "data",
            "demo",
            "false",
            "guest",
            "hive",
            "home",
            "java",
            "local",
            "main",
        ),
        *("none", "null", "prod", "root", "spark", "state", "test", "text", "true", "user"),
    )
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~])")
_SHELL = re.compile(r"([^\w@%+=:,./-])")
_WRAPPED_AT = (64, 76)  # what `openssl base64` and `base64` do with long values


def encodings(value: str) -> list[str]:
    """`value` and every encoding of it, longest first, without doubles.

    Base64 comes in its three alignments, because a secret inside a longer text (`user:password`)
    starts at any of three bit offsets. The characters at the ends that also depend on the
    neighbours are left out there.
    """
    raw = value.encode("utf-8", "surrogatepass")
    found = {value, *_quoted(value), *_base64(raw), raw.hex(), raw.hex().upper()}
    found |= {json.dumps(form)[1:-1] for form in _quoted(value)}
    return sorted((form for form in found if form), key=lambda form: (-len(form), form))


def known_forms(value: str) -> Iterator[str]:
    """The forms of `value`, and of each line of it, that may be taken out wherever they stand."""
    for part in {value, *_lines(value)}:
        if len(part) >= SHORTEST_ANYWHERE:
            for form in encodings(part):
                if len(form) >= SHORTEST_ANYWHERE:
                    yield form


def whole_words(value: str) -> Iterator[str]:
    """`value` if it is so short that it may be taken out only as a word of its own."""
    if SHORTEST_WORD <= len(value) < SHORTEST_ANYWHERE and value.lower() not in _ORDINARY_WORDS:
        yield value


def secret_values(environ: Mapping[str, str]) -> list[str]:
    """The values in an environment that look like secrets, by name or by shape, longest first.

    Taken are values whose name says so (`..._PASSWORD`, `..._TOKEN`), the secret members of a value
    that is a JSON object (a service account), and passwords inside connection URLs.
    """
    found: set[str] = set()
    for name, value in environ.items():
        found.update(unquote(password) for password in _URL_PASSWORD.findall(value))
        found.update(_URL_PASSWORD.findall(value))
        if _SECRET_NAME.search(name) and not value.startswith(("/", "~", "./")):
            members = list(_json_members(value))
            found.update(members or [value])
    return sorted(
        (value for value in found if value.strip()), key=lambda value: (-len(value), value)
    )


_URL_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s:/@\"']*:([^\s/\"']+)@")
_SECRET_NAME = re.compile(
    r"passw|pwd|secret|token|credential|passphrase|dsn|api_?key|access_?key|private_?key"
    r"|account_?key|encryption_?key|conn(?:ection)?_?str|_key$|_pat$|_auth$",
    re.IGNORECASE,
)


def _json_members(value: str) -> Iterator[str]:
    if not value.lstrip().startswith("{"):
        return
    try:
        document = json.loads(value)
    except ValueError:
        return
    for name, member in document.items():
        if isinstance(member, str) and _SECRET_NAME.search(name):
            yield member


def _lines(value: str) -> list[str]:
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if len(line) >= SHORTEST_ANYWHERE] if len(lines) > 1 else []


def _quoted(value: str) -> set[str]:
    """How JSON, URLs, shells, XML, SQL, Python and Markdown write `value`."""
    urls = {quote(value, safe=safe, errors="replace") for safe in ("", "/", "!'()*~-_.")}
    urls.add(quote_plus(value, errors="replace"))
    urls |= {re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), url) for url in urls}
    jsons = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    jsons |= {text.replace("/", "\\/") for text in jsons}
    xml = {html.escape(value, quote=False)}
    xml |= {text.replace("'", mark) for text in xml for mark in ("&#39;", "&#x27;", "&apos;")}
    xml |= {text.replace('"', "&quot;") for text in xml}
    return {
        value,
        *urls,
        *jsons,
        shlex.quote(value)[1:-1] if shlex.quote(value) != value else value,
        _SHELL.sub(r"\\\1", value),
        *xml,
        value.replace("'", "''"),
        repr(value)[1:-1],
        _MARKDOWN.sub(r"\\\1", value),
        value.replace("|", "\\|"),
    }


def _base64(raw: bytes) -> set[str]:
    found: set[str] = set()
    for offset, foreign in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        # Of the last group, a character that carries bits of the next byte is not stable.
        stable = text if (offset + len(raw)) % 3 == 0 else text[:-1]
        found.add(stable[foreign:])
    padded = base64.b64encode(raw).decode()
    found.add(padded)
    for width in _WRAPPED_AT:
        if len(padded) > width:
            found.update(padded[start : start + width] for start in range(0, len(padded), width))
    return found | {text.replace("+", "-").replace("/", "_") for text in found}
