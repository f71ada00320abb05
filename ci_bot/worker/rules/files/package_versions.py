"""Versions of the engine, of SQLMesh and of packages, in files that decide which are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.files.deployment_yaml import (
    DeploymentDifference,
    show_text_of_deployment_file,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file

CHANGED = find_rule("engine-version-changed")

_SPARK = (
    "Another major version of Spark has other defaults, which change values and make casts fail "
    "(Spark 4 has ANSI mode on)"
)
_SQLMESH = (
    "Another major version of SQLMesh may render, fingerprint and build the same project "
    "differently, and migrates the state"
)
_SQLGLOT = (
    "SQLGlot writes the SQL that the engine gets, and another major version may write it otherwise"
)
_DUCKDB = "Another major version of DuckDB may compute the same query differently"
_PANDAS = (
    "SQLMesh reads seeds and Python models compute with it, and another major version may give "
    "other values or types"
)
# Packages, with the effect of another major version.
_PACKAGES = {
    "pyspark": _SPARK, "pyspark-client": _SPARK, "pyspark-connect": _SPARK,
    "databricks-connect": "Another major version of the Databricks runtime brings another Spark, "
    "with other defaults",
    "sqlmesh": _SQLMESH,
    "sqlglot": _SQLGLOT, "sqlglotrs": _SQLGLOT,
    "duckdb": _DUCKDB,
    "pandas": _PANDAS, "numpy": _PANDAS,
}  # fmt: skip
_HELD_ABOVE = frozenset({"pyspark", "pyspark-client", "pyspark-connect", "sqlmesh"})
_NAMES = "|".join(sorted(map(re.escape, _PACKAGES), key=len, reverse=True))

# It matches name[extras], and then the bounds of its version.
_REQUIREMENT = re.compile(
    rf"(?<![\w.-])(?P<name>{_NAMES})(?:\[[^\]]*\])?[^\S\n]*"
    r"(?P<asked>\(?\s*(?:===|==|~=|!=|<=|>=|<|>)[^;#'\"\n)]*)?",
    re.IGNORECASE,
)
# TOML with a key for each package: pyspark = "^3.5", pyspark = {version = "^3.5"}.
_KEY = re.compile(
    rf"^[^\S\n]*[\"']?(?P<name>{_NAMES})[\"']?\s*[=:]\s*(?:\{{[^}}\n]*?version[\"']?\s*[=:]\s*)?"
    r"[\"'](?P<asked>[^\"'\n]*)[\"']",
    re.IGNORECASE | re.MULTILINE,
)
# [[package]] of poetry.lock, uv.lock and pdm.lock; Pipfile.lock has a mapping.
_LOCKED = re.compile(
    rf"name\s*=\s*\"(?P<name>{_NAMES})\"\s*\n\s*version\s*=\s*\"(?P<asked>[^\"]+)\"",
    re.IGNORECASE,
)
_PIPFILE_LOCK = re.compile(
    rf"\"(?P<name>{_NAMES})\"\s*:\s*\{{[^{{}}]*?\"version\"\s*:\s*\"(?P<asked>[^\"]+)\"",
    re.IGNORECASE | re.DOTALL,
)
# Images, archives and variables by which containers and workflows install Spark.
_SPARK_IMAGE = re.compile(
    r"(?:^|[\s/\"'=])(?:apache/|bitnami/|jupyter/)?(?:spark(?:-py)?|pyspark-notebook|all-spark-notebook)"
    r":(?:spark-)?(?P<asked>\d+(?:\.\d+)*)",
    re.IGNORECASE | re.MULTILINE,
)
_SPARK_NAMED = re.compile(
    r"\b(?:SPARK_VERSION[\"']?\s*[=:]\s*[\"']?|spark-)(?P<asked>\d+\.\d+(?:\.\d+)?)(?:-bin)?",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?")
LOCK_FILES = frozenset({"poetry.lock", "uv.lock", "pdm.lock"})


@dataclass(frozen=True)
class VersionBound:
    """The bounds of one package's version in a file.

    Attributes:
        text: the bounds as they are written.
        major: the first major version in them; None if there is none.
        is_open: whether a later major version may be installed.
    """

    text: str
    major: int | None
    is_open: bool


@on_file(CHANGED)
def find_version_changes_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another major version, or a version that no longer has an upper bound."""
    for path in inputs.changed_files or ():
        if not _is_version_file(path):
            continue
        before, after = inputs.read_text_before(path), inputs.read_text_after(path)
        if before is None or after is None:
            continue
        old = list_version_bounds_in_file(path, before)
        new = list_version_bounds_in_file(path, after)
        for name in sorted(old.keys() & new.keys()):
            difference = _compare_versions(name, old[name], new[name])
            if difference is None:
                continue
            evidence, severity = difference
            yield RuleObservation(
                CHANGED,
                evidence,
                "prod is known to run this version already, or the results of both are compared",
                severity=severity,
                path=path,
                line=find_anchor_line(after, (new[name].text, name)),
                subject=(name,),
            )


def _compare_versions(
    name: str, old: VersionBound, new: VersionBound
) -> tuple[str, Severity | None] | None:
    why = _PACKAGES.get(name, _SPARK)
    shown = f"`{name}` goes from {old.text or 'any version'} to {new.text or 'any version'}"
    if old.major is not None and new.major is not None and old.major != new.major:
        return f"{shown}. {why}.", "medium" if why == _DUCKDB else None
    if name in _HELD_ABOVE and new.is_open and not old.is_open:
        return f"{shown}, and the next installation may bring another major version. {why}.", None
    return None


def _is_version_file(path: str) -> bool:
    if not is_file_read_by_a_rule(path):
        return False
    pure = PurePosixPath(path)
    name = pure.name.lower()
    return (
        name in {*LOCK_FILES, "pyproject.toml", "pipfile", "pipfile.lock", "setup.py", "setup.cfg"}
        or (
            pure.suffix in {".txt", ".in", ".lock"}
            and ("require" in str(pure) or "constraint" in name)
        )
        or "dockerfile" in name
        or name in {"containerfile", "environment.yml", "environment.yaml", ".env"}
        or (pure.suffix in {".yml", ".yaml"} and (".github" in pure.parts or "compose" in name))
    )


def list_version_bounds_in_file(path: str, text: str) -> Mapping[str, VersionBound]:
    """Maps each package in a file to its version bounds; `spark` is an image or an archive."""
    name = PurePosixPath(path).name.lower()
    if name in LOCK_FILES:
        found = _LOCKED.finditer(text)
        return {_name_package(one): _parse_bound(one["asked"], is_exact=True) for one in found}
    if name == "pipfile.lock":
        found = _PIPFILE_LOCK.finditer(text)
        return {_name_package(one): _parse_bound(one["asked"], is_exact=True) for one in found}
    bare = "\n".join(line.partition(" #")[0] for line in text.splitlines() if line[:1] != "#")
    held: dict[str, VersionBound] = {}
    for one in _REQUIREMENT.finditer(bare):
        if one["asked"] is not None or _is_requirement(one, bare):
            held.setdefault(
                _name_package(one),
                _parse_bound((one["asked"] or "").strip(" (,"), is_exact=False),
            )
    if name in {"pyproject.toml", "pipfile"}:
        for one in _KEY.finditer(bare):
            # For Poetry a plain version means a caret: up to the next major version.
            held[_name_package(one)] = _parse_bound(
                one["asked"], is_exact=one["asked"][:1].isdigit()
            )
    for pattern in (_SPARK_IMAGE, _SPARK_NAMED):
        for one in pattern.finditer(bare):
            held.setdefault("spark", _parse_bound(one["asked"], is_exact=True))
    return held


def normalize_package_name(name: str) -> str:
    """Returns the name of a package as indexes compare it: `-`, `_` and `.` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _name_package(match: re.Match[str]) -> str:
    return match["name"].lower()


def _is_requirement(match: re.Match[str], text: str) -> bool:
    """Whether a name without a version is a requirement: a line, or an item of a list."""
    before, after = text[: match.start()], text[match.end() :]
    return before[-1:] in {"", "\n", '"', "'"} and after[:1] in {"", "\n", '"', "'", "\r"}


def _parse_bound(text: str, *, is_exact: bool) -> VersionBound:
    version = _VERSION.search(text)
    major = int(version[1]) if version is not None else None
    if is_exact or re.match(r"\s*(===|==|\^|~)", text):
        # ~=3 has no upper bound, ~=3.5 ends before 4.
        return VersionBound(text, major, re.match(r"\s*~=\s*\d+\s*$", text) is not None)
    named = [int(one) for one in re.findall(r"(?:>=|>|==|~=)\s*(\d+)", text)]
    return VersionBound(text, named[0] if named else major, re.search(r"<|==|~=", text) is None)


_TABLE = re.compile(r"^\[\[package\]\][^\S\n]*$", re.MULTILINE)
_FIELD = re.compile(r'^(name|version)\s*=\s*"([^"\n]*)"', re.MULTILINE)
# A source is a table of its own (Poetry) or one line (uv); PDM names it among the fields.
_SOURCE = re.compile(
    r'^\[package\.source\]\n(?P<table>(?:[a-z_]+ = "[^"\n]*"\n?)+)|^source = \{(?P<line>[^}\n]*)\}'
    r'|^(?P<field>(?:git|url|path) = "[^"\n]*")',
    re.MULTILINE,
)
_ADDRESS = re.compile(
    r'\b(url|registry|git|path|editable|virtual|directory|reference)\s*=\s*"([^"]*)"'
)
_HASH = re.compile(r"\bsha\d+:[0-9a-f]{16,}")
# A line of a requirements file with an exact version, as it is needed for hashes.
_HASHED_LINE = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])?\s*==\s*(?P<version>[^\s;\\]+)"
)
_OWN = frozenset({"virtual", "editable"})


class _LockedPackage(NamedTuple):
    version: str
    source: str
    hashes: frozenset[str]


def is_lock_file(path: str) -> bool:
    """Whether a file is a lock file with tables of packages."""
    return PurePosixPath(path).name.lower() in LOCK_FILES


def list_lock_differences(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists packages that come from elsewhere, and those with other content in the same version."""
    yield from _compare_packages(_read_lock_file_tables(before), _read_lock_file_tables(after))


def list_hash_differences(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists packages of requirements with hashes that have other content in the same version.

    Another function compares the sources of these packages.
    """
    yield from _compare_packages(_read_requirement_lines(before), _read_requirement_lines(after))


def _compare_packages(
    old: dict[str, _LockedPackage], new: dict[str, _LockedPackage]
) -> Iterator[DeploymentDifference]:
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
            yield DeploymentDifference(
                name,
                f"`{name}` comes from "
                f"{show_text_of_deployment_file(now.source or 'the usual index')}, and came from "
                f"{origin}: its code may be another one, whatever its version says",
            )
        elif was is not None and was.version == now.version and _has_other_content(was, now):
            yield DeploymentDifference(
                name,
                f"`{name}` {now.version} has other hashes than before under the same version: "
                "another code is installed",
            )


def _has_other_content(was: _LockedPackage, now: _LockedPackage) -> bool:
    return bool(was.hashes and now.hashes) and was.hashes.isdisjoint(now.hashes)


def _read_lock_file_tables(text: str) -> dict[str, _LockedPackage]:
    found: dict[str, _LockedPackage] = {}
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
            # One package may have several versions, each for other platforms.
            key = normalize_package_name(fields["name"])
            hashes = frozenset(_HASH.findall(block))
            known = found.get(key)
            found[key] = _LockedPackage(
                f"{known.version}, {fields.get('version', '')}"
                if known
                else fields.get("version", ""),
                shown,
                hashes | known.hashes if known else hashes,
            )
    return found


def _read_requirement_lines(text: str) -> dict[str, _LockedPackage]:
    found: dict[str, _LockedPackage] = {}
    for line in re.sub(r"\\[^\S\n]*\n", " ", text).splitlines():
        match = _HASHED_LINE.match(line.strip())
        if match is not None:
            key = normalize_package_name(match["name"])
            found[key] = _LockedPackage(match["version"], "", frozenset(_HASH.findall(line)))
    return found
