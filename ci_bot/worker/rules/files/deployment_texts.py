"""Files that say what prod is built from and stands on, read line by line: images, what a checkout
or an image leaves out, packages, infrastructure, Hadoop's settings, scripts.

Each function lists what differs between two versions, but for what changes nothing there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ci_bot.file_patterns import FilePattern, read_pattern
from ci_bot.worker.rules.files.deployment_yaml import Difference, show_change, show_line, show_plain

# Docker: https://docs.docker.com/reference/dockerfile

_NO_INSTRUCTION = frozenset({"LABEL", "EXPOSE", "HEALTHCHECK", "MAINTAINER", "STOPSIGNAL", "SHELL"})
_OF_LOGS = re.compile(r"^ENV\s+(PYTHON\w+|PIP_\w+|LOG\w*|DEBIAN_FRONTEND)[= ]", re.IGNORECASE)


def list_image_differences(before: str, after: str) -> Iterator[Difference]:
    """Instructions of a Dockerfile that are not as they were."""
    old, new = (Counter(_list_instructions(text)) for text in (before, after))
    yield from _list_lines(old, new, "the image that prod runs is built otherwise")


def _list_instructions(text: str) -> Iterator[str]:
    joined = re.sub(r"\\[^\S\n]*\n", " ", _drop_hash_comments(text))
    for line in joined.splitlines():
        words = line.split()
        if words and words[0].upper() not in _NO_INSTRUCTION and not _OF_LOGS.match(line.strip()):
            yield " ".join([words[0].upper(), *words[1:]])


def _drop_hash_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


_MOST_TOLD = 4


def _list_lines(old: Counter[str], new: Counter[str], effect: str) -> Iterator[Difference]:
    """One difference for all lines that go or come."""
    lost, gained = (list((a - b).elements()) for a, b in ((old, new), (new, old)))
    if not lost and not gained:
        return
    told = [f"without {show_line(line)}" for line in lost]
    told += [f"with {show_line(line)}" for line in gained]
    rest = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    yield Difference(
        (gained or lost)[0].split()[0],
        f"It is now {', '.join(told[:_MOST_TOLD])}{rest}: {effect}",
    )


# Infrastructure: https://developer.hashicorp.com/terraform/language

_OF_PEOPLE = re.compile(
    r"^(tags|tags_all|labels|default_tags|description|comment|Name|team|owner)\b"
)
_TAG_BLOCK = re.compile(r"\b(tags|tags_all|labels|default_tags)[ \t]{0,40}=?[ \t]{0,40}\{[^{}]*\}")
_REMARK = re.compile(r"^[^\S\n]*(#|//)[^\n]*$", re.MULTILINE)


def list_infrastructure_differences(before: str, after: str) -> Iterator[Difference]:
    """Lines of Terraform that are not as they were."""
    old, new = (Counter(_list_settings_of(text)) for text in (before, after))
    yield from _list_lines(
        old, new, "what prod stands on changes, which no plan of SQLMesh shows; Terraform's does"
    )


def _list_settings_of(text: str) -> Iterator[str]:
    for line in _TAG_BLOCK.sub("", _REMARK.sub("", text)).splitlines():
        words = " ".join(line.split())
        if words.strip("{}[](), ") and not _OF_PEOPLE.match(words):
            yield words


# Hadoop and Hive: *-site.xml.

_PROPERTY = re.compile(
    r"<name>\s{0,50}(?P<name>[^<\s]{1,300})\s{0,50}</name>\s{0,50}"
    r"<value>(?P<value>[^<]{0,2000})</value>"
)
_OF_SPEED = re.compile(
    r"timeout|retr(y|ies)|thread|cache|buffer|log|metrics|interval|pool|attempts"
)


def list_site_differences(before: str, after: str) -> Iterator[Difference]:
    """Properties of Hadoop, Hive or HDFS that have another value."""
    old, new = (_read_properties(text) for text in (before, after))
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was != now and not _OF_SPEED.search(name):
            yield Difference(
                name,
                f"{show_change((name,), was, now)}: where tables are looked up and written, or "
                "how, is another",
            )


def _read_properties(text: str) -> dict[str, str]:
    return {found["name"]: found["value"].strip() for found in _PROPERTY.finditer(text)}


def read_spark_properties(text: str) -> dict[str, str]:
    """The settings of a spark-defaults.conf, by key."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("spark.") and "#" not in words[:6]:
            key, _, value = re.sub(r"[\s=:]+", " ", words, count=1).partition(" ")
            found[key] = value.strip()
    return found


# What a checkout or an image leaves out. Patterns of both files are nearly those of git.

_MOST_PATTERNS = 500
_NOT_MISSED = re.compile(
    r"(^|/)(docs?|tests?|\.git|\.github|\.cache|logs?|\.venv|__pycache__)(/|$)|\.(md|rst|log|pyc)$"
    r"|(^|/)(LICENSE|CODEOWNERS|\.[^/]*ignore|\.gitattributes|\.editorconfig|Dockerfile)[^/]*$",
    re.IGNORECASE,
)


def list_image_exclusions(
    before: str | None, after: str, files: Iterable[str]
) -> Iterator[Difference]:
    """Patterns of a .dockerignore that leave files of the project out of the image from now on."""
    old, new = _list_patterns(before or ""), _list_patterns(after)
    if len(old) + len(new) > _MOST_PATTERNS:
        yield Difference("", "It has so many lines that nobody compared what it leaves out")
        return
    already = [_read_exclusion(pattern) for pattern in old]
    for pattern in new:
        if pattern in old or pattern.startswith("!"):
            continue
        excluded = _read_exclusion(pattern)
        hidden = [
            path
            for path in files
            if excluded.matches(path)
            and not _NOT_MISSED.search(path)
            and not any(one.matches(path) for one in already)
        ]
        if hidden:
            yield Difference(
                pattern,
                f"`{pattern}` leaves {show_plain(sorted(hidden)[0])} out of the image"
                + (f" and {len(hidden) - 1} files more" if len(hidden) > 1 else "")
                + ": code that lists or reads them there finds nothing",
            )


def _read_exclusion(pattern: str) -> FilePattern:
    # A pattern is anchored at the root there, with or without a slash before it.
    return read_pattern(f"/{pattern.lstrip('/')}")


def _list_patterns(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]


_REWRITES = re.compile(r"\s(filter=(?!$)\S+|working-tree-encoding=\S+|export-ignore\b|ident\b)")


def list_checkout_differences(
    before: str | None, after: str, files: Iterable[str]
) -> Iterator[Difference]:
    """Attributes of git's by which files are checked out as something else than is committed."""
    known = set(_list_patterns(before or ""))
    every, lines = list(files), _list_patterns(after)
    if len(lines) > _MOST_PATTERNS:
        yield Difference("", "It has so many lines that nobody compared which files they mean")
        return
    for line in lines:
        rewrites = _REWRITES.findall(line) if line not in known else []
        pattern = line.split()[0]
        files_meant = read_pattern(pattern)
        met = sorted(path for path in every if files_meant.matches(path))
        if rewrites and met:
            yield Difference(
                pattern,
                f"`{pattern}` gets `{rewrites[0]}`: the next checkout may hold something else than "
                f"the content of {show_plain(met[0])}"
                + (f" and {len(met) - 1} files more" if len(met) > 1 else "")
                + ", and what is deployed reads that",
            )


# Packages: https://pip.pypa.io/en/stable/reference/requirements-file-format

_OPTION = re.compile(
    r"^(-i|--index-url|--extra-index-url|-f|--find-links|--trusted-host|--no-index|--pre)\b"
)
_ELSEWHERE = re.compile(r"@\s*(git\+|hg\+|svn\+|https?:|file:)|^(git\+|https?:|-e\s|\./|\.\./|/)")
_PACKAGE = re.compile(r"^([A-Za-z0-9][\w.-]*)")
_OF_DEVELOPERS = re.compile(r"dev|test|lint|doc|typing|ci\b", re.IGNORECASE)


def is_requirements_file(path: str) -> bool:
    """Whether a file lists packages that prod gets: for pip, and not for developers."""
    name = PurePosixPath(path).name.lower()
    in_folder = PurePosixPath(path).parent.name == "requirements"
    named = in_folder or name.startswith(("requirements", "constraints"))
    return named and name.endswith((".txt", ".in", ".lock")) and not _OF_DEVELOPERS.search(name)


def list_package_differences(before: str, after: str) -> Iterator[Difference]:
    """Other sources of packages, and packages that are gone."""
    old, new = (_list_requirements(text) for text in (before, after))
    for line in new:
        if line not in old and _OPTION.match(line):
            yield Difference(
                line.split()[0], f"{show_line(line)} is new: packages come from elsewhere, too"
            )
        elif line not in old and _ELSEWHERE.search(line):
            yield Difference(
                line.split()[0], f"{show_line(line)} is new: this code comes from no package index"
            )
    names = {_package_name(line) for line in new}
    for line in old:
        name = _package_name(line)
        if name is not None and name not in names and not _OPTION.match(line):
            yield Difference(
                "", f"`{name}` is no longer installed: what needs it fails, or does without"
            )


def _list_requirements(text: str) -> list[str]:
    joined = re.sub(r"\\[^\S\n]*\n", " ", text)
    lines = (line.partition(" #")[0].strip() for line in joined.splitlines())
    # A hash is a form of the same package.
    return [re.sub(r"\s+--hash=\S+", "", line) for line in lines if line and line[0] != "#"]


def _package_name(line: str) -> str | None:
    found = _PACKAGE.match(line)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found is not None else None


def list_script_differences(before: str | None, after: str) -> Iterator[Difference]:
    """Line ends of Windows, with which no shell runs a script."""
    if "\r\n" in after and "\r\n" not in (before or ""):
        yield Difference(
            "", "Its lines end as on Windows: a shell takes the end for a part of each command"
        )
