"""Packages in lock files: from where, and with which content, prod installs them.

The formats are those of Poetry, uv and PDM, which are TOML with a table for each package, and pip's
requirements with hashes. Another version is no finding here: it is what a lock file is changed for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from ci_bot.worker.rules.files.deployment_yaml import Difference, show_text_of_deployment_file

LOCK_FILES = frozenset({"poetry.lock", "uv.lock", "pdm.lock"})
_TABLE = re.compile(r"^\[\[package\]\][^\S\n]*$", re.MULTILINE)
_FIELD = re.compile(r'^(name|version)\s*=\s*"([^"\n]*)"', re.MULTILINE)
# A source that is a table of its own (Poetry), or in one line (uv); PDM names it among the fields.
_SOURCE = re.compile(
    r'^\[package\.source\]\n(?P<table>(?:[a-z_]+ = "[^"\n]*"\n?)+)|^source = \{(?P<line>[^}\n]*)\}'
    r'|^(?P<field>(?:git|url|path) = "[^"\n]*")',
    re.MULTILINE,
)
_ADDRESS = re.compile(
    r'\b(url|registry|git|path|editable|virtual|directory|reference)\s*=\s*"([^"]*)"'
)
_HASH = re.compile(r"\bsha\d+:[0-9a-f]{16,}")
# Poetry's name for the index that is used unless a source is named, and uv's address of it.
_HASHED_LINE = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])?\s*==\s*(?P<version>[^\s;\\]+)"
)
_OWN = frozenset({"virtual", "editable"})


class _Locked(NamedTuple):
    version: str
    source: str
    hashes: frozenset[str]


def is_lock_file(path: str) -> bool:
    """Whether a file is a lock file with tables of packages."""
    return PurePosixPath(path).name.lower() in LOCK_FILES


def list_lock_differences(before: str, after: str) -> Iterator[Difference]:
    """Packages that come from elsewhere, and those with other content under the same version."""
    yield from _compare_packages(_read_tables(before), _read_tables(after))


def list_hash_differences(before: str, after: str) -> Iterator[Difference]:
    """The same for requirements with hashes, of which sources are compared elsewhere."""
    yield from _compare_packages(_read_lines(before), _read_lines(after))


def _compare_packages(old: dict[str, _Locked], new: dict[str, _Locked]) -> Iterator[Difference]:
    usual = {package.source for package in old.values()}
    for name, now in sorted(new.items()):
        was = old.get(name)
        is_moved = was is not None and was.source != now.source
        if is_moved or (was is None and old and now.source not in usual):
            origin = (
                show_text_of_deployment_file(was.source or "the usual index")
                if was is not None
                else "nowhere"
            )
            yield Difference(
                name,
                f"`{name}` comes from "
                f"{show_text_of_deployment_file(now.source or 'the usual index')}, and came from "
                f"{origin}: its code may be another one, whatever its version says",
            )
        elif was is not None and was.version == now.version and _has_other_content(was, now):
            yield Difference(
                name,
                f"`{name}` {now.version} has other hashes than before under the same version: "
                "another code is installed",
            )


def _has_other_content(was: _Locked, now: _Locked) -> bool:
    return bool(was.hashes and now.hashes) and was.hashes.isdisjoint(now.hashes)


def _read_tables(text: str) -> dict[str, _Locked]:
    found: dict[str, _Locked] = {}
    for block in _TABLE.split(text)[1:]:
        fields = dict(reversed(_FIELD.findall(block)))
        source = _SOURCE.search(block)
        shown = ""
        if source is not None:
            parts = _ADDRESS.findall(source["table"] or source["line"] or source["field"])
            if not _OWN.isdisjoint(key for key, _ in parts):
                continue  # the project itself
            shown = " ".join(value for _, value in parts)
        if "name" in fields:
            # One package may have several versions, each for its own platforms.
            key = re.sub(r"[-_.]+", "-", fields["name"]).lower()
            hashes = frozenset(_HASH.findall(block))
            known = found.get(key)
            found[key] = _Locked(
                f"{known.version}, {fields.get('version', '')}"
                if known
                else fields.get("version", ""),
                shown,
                hashes | known.hashes if known else hashes,
            )
    return found


def _read_lines(text: str) -> dict[str, _Locked]:
    found: dict[str, _Locked] = {}
    for line in re.sub(r"\\[^\S\n]*\n", " ", text).splitlines():
        match = _HASHED_LINE.match(line.strip())
        if match is not None:
            key = re.sub(r"[-_.]+", "-", match["name"]).lower()
            found[key] = _Locked(match["version"], "", frozenset(_HASH.findall(line)))
    return found
