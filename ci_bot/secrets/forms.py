"""A known secret in all the forms in which programs print it; `known` sees to letter case."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

# Shorter lines of a longer secret are words.
SHORTEST_LINE = 6
# A line of YAML or of properties: what is secret there is a part of it.
_MEMBER = re.compile(r"[\"'\-\s]*[A-Za-z_][\w.\-]*[\"']?\s*(?::\s|=\S|=\s)")
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


def lines(value: str) -> Iterator[str]:
    """`value`, and each line of it where it has several: programs print keys line by line."""
    # Pasted values often end in a line break, and programs strip it.
    yield from dict.fromkeys((value, value.strip()))
    parts = [line.strip() for line in value.splitlines()]
    if len(parts) > 1:
        yield from (
            line for line in parts if len(line) >= SHORTEST_LINE and not _MEMBER.match(line)
        )


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
        *(value.replace(mark, mark * 2) for mark in "'\"`"),
        repr(value)[1:-1],
        repr(value.encode("utf-8", "surrogatepass"))[2:-1],
        *_in_names(value),
        _MARKDOWN.sub(r"\\\1", value),
        value.replace("|", "\\|"),
    }


def _in_names(value: str) -> set[str]:
    """As a part of a physical table's name; a text of signs only would become nothing but `_`."""
    if sum(char.isascii() and char.isalnum() for char in value) < SHORTEST_LINE:
        return set()
    return {re.sub(r"[^A-Za-z0-9_]", "_", value), re.sub(r"\W", "_", value)}


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
