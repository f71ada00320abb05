"""Files that decide how prod is built, started, guarded and hosted, beside models and settings.

No plan shows their changes. A file of a known kind is compared as that kind, line by line here and
as YAML in `deployment_yaml`. Changes that are known to have no effect (comments, names, labels,
more memory) are left out, and a person checks all others.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath

from ci_bot.file_patterns import (
    CODEOWNERS_PLACES,
    FilePattern,
    OwnerLine,
    find_owner_line,
    read_owner_lines,
    read_pattern,
)
from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.files.configuration import CONFIRM
from ci_bot.worker.rules.files.deployment_yaml import (
    DeploymentDifference,
    find_deployment_format,
    is_manifest_file,
    list_differences_of_manifest_file,
    list_differences_of_workflow_file,
    list_pipeline_differences,
    show_change_of_deployment_file,
    show_line_of_deployment_file,
    show_text_of_deployment_file,
)
from ci_bot.worker.rules.files.package_versions import (
    is_lock_file,
    list_hash_differences,
    list_lock_differences,
    normalize_package_name,
)
from ci_bot.worker.rules.files.settings import SPARK
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file
from ci_bot.worker.sql_effects import find_effect_of_setting

# Docker: https://docs.docker.com/reference/dockerfile

_NO_INSTRUCTION = frozenset({"LABEL", "EXPOSE", "HEALTHCHECK", "MAINTAINER", "STOPSIGNAL", "SHELL"})
_OF_LOGS = re.compile(r"^ENV\s+(PYTHON\w+|PIP_\w+|LOG\w*|DEBIAN_FRONTEND)[= ]", re.IGNORECASE)


def list_differences_of_image_file(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists the instructions of a Dockerfile that changed."""
    old, new = (Counter(_list_instructions(text)) for text in (before, after))
    yield from _list_changed_lines(old, new, "the image that prod runs is built otherwise")


def _list_instructions(text: str) -> Iterator[str]:
    joined = re.sub(r"\\[^\S\n]*\n", " ", _drop_hash_comments(text))
    for line in joined.splitlines():
        words = line.split()
        if words and words[0].upper() not in _NO_INSTRUCTION and not _OF_LOGS.match(line.strip()):
            yield " ".join([words[0].upper(), *words[1:]])


def _drop_hash_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


_MOST_TOLD = 4


def _list_changed_lines(
    old: Counter[str], new: Counter[str], effect: str
) -> Iterator[DeploymentDifference]:
    """Yields one difference for all lines that are added or removed."""
    lost, gained = (list((a - b).elements()) for a, b in ((old, new), (new, old)))
    if not lost and not gained:
        return
    told = [f"without {show_line_of_deployment_file(line)}" for line in lost]
    told += [f"with {show_line_of_deployment_file(line)}" for line in gained]
    rest = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    yield DeploymentDifference(
        (gained or lost)[0].split()[0],
        f"It is now {', '.join(told[:_MOST_TOLD])}{rest}: {effect}",
    )


# Infrastructure: https://developer.hashicorp.com/terraform/language

_OF_PEOPLE = re.compile(
    r"^(tags|tags_all|labels|default_tags|description|comment|Name|team|owner)\b"
)
_TAG_BLOCK = re.compile(r"\b(tags|tags_all|labels|default_tags)[ \t]{0,40}=?[ \t]{0,40}\{[^{}]*\}")
_REMARK = re.compile(r"^[^\S\n]*(#|//)[^\n]*$", re.MULTILINE)


def list_differences_of_terraform_file(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists the lines of Terraform that changed."""
    old, new = (Counter(_list_deployment_settings(text)) for text in (before, after))
    yield from _list_changed_lines(
        old, new, "what prod runs on changes, which no plan of SQLMesh shows; Terraform's does"
    )


def _list_deployment_settings(text: str) -> Iterator[str]:
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


def list_differences_of_hadoop_file(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists properties of Hadoop, Hive or HDFS that have another value."""
    old, new = (_read_properties(text) for text in (before, after))
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was != now and not _OF_SPEED.search(name):
            yield DeploymentDifference(
                name,
                f"{show_change_of_deployment_file((name,), was, now)}: where tables are looked up "
                "and written, or how, is another",
            )


def _read_properties(text: str) -> dict[str, str]:
    return {found["name"]: found["value"].strip() for found in _PROPERTY.finditer(text)}


def read_spark_properties_file(text: str) -> dict[str, str]:
    """Reads the settings of a spark-defaults.conf, by key."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("spark.") and "#" not in words[:6]:
            key, _, value = re.sub(r"[\s=:]+", " ", words, count=1).partition(" ")
            found[key] = value.strip()
    return found


# Files that a checkout or an image leaves out. Both formats use nearly the patterns of git.

_MOST_PATTERNS = 500
_NOT_MISSED = re.compile(
    r"(^|/)(docs?|tests?|\.git|\.github|\.cache|logs?|\.venv|__pycache__)(/|$)|\.(md|rst|log|pyc)$"
    r"|(^|/)(LICENSE|CODEOWNERS|\.[^/]*ignore|\.gitattributes|\.editorconfig|Dockerfile)[^/]*$",
    re.IGNORECASE,
)


def list_files_excluded_from_image(
    before: str | None, after: str, files: Iterable[str]
) -> Iterator[DeploymentDifference]:
    """Lists new patterns of a .dockerignore that leave files of the project out of the image."""
    old, new = _list_ignore_file_patterns(before or ""), _list_ignore_file_patterns(after)
    if len(old) + len(new) > _MOST_PATTERNS:
        yield DeploymentDifference(
            "", "It has so many lines that nobody compared what it leaves out"
        )
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
            yield DeploymentDifference(
                pattern,
                f"`{pattern}` leaves {show_text_of_deployment_file(sorted(hidden)[0])} out of the "
                f"image"
                + (f" and {len(hidden) - 1} files more" if len(hidden) > 1 else "")
                + ": code that lists or reads them there finds nothing",
            )


def _read_exclusion(pattern: str) -> FilePattern:
    # In a .dockerignore a pattern begins at the root, with or without a slash before it.
    return read_pattern(f"/{pattern.lstrip('/')}")


def _list_ignore_file_patterns(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]


_REWRITES = re.compile(r"\s(filter=(?!$)\S+|working-tree-encoding=\S+|export-ignore\b|ident\b)")


def list_differences_of_gitattributes_file(
    before: str | None, after: str, files: Iterable[str]
) -> Iterator[DeploymentDifference]:
    """Lists git attributes by which a checkout changes the content of files."""
    known = set(_list_ignore_file_patterns(before or ""))
    every, lines = list(files), _list_ignore_file_patterns(after)
    if len(lines) > _MOST_PATTERNS:
        yield DeploymentDifference(
            "", "It has so many lines that nobody compared which files they mean"
        )
        return
    for line in lines:
        rewrites = _REWRITES.findall(line) if line not in known else []
        pattern = line.split()[0]
        files_meant = read_pattern(pattern)
        met = sorted(path for path in every if files_meant.matches(path))
        if rewrites and met:
            yield DeploymentDifference(
                pattern,
                f"`{pattern}` gets `{rewrites[0]}`: the next checkout may hold something else than "
                f"the content of {show_text_of_deployment_file(met[0])}"
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
    """Whether a file lists packages for pip that prod gets, and not only developers."""
    name = PurePosixPath(path).name.lower()
    in_folder = PurePosixPath(path).parent.name == "requirements"
    named = in_folder or name.startswith(("requirements", "constraints"))
    return named and name.endswith((".txt", ".in", ".lock")) and not _OF_DEVELOPERS.search(name)


def list_differences_of_requirements_file(
    before: str, after: str
) -> Iterator[DeploymentDifference]:
    """Lists other sources of packages, and packages that are gone."""
    old, new = (_list_requirement_lines(text) for text in (before, after))
    for line in new:
        if line not in old and _OPTION.match(line):
            yield DeploymentDifference(
                line.split()[0],
                f"{show_line_of_deployment_file(line)} is new: packages come from elsewhere, too",
            )
        elif line not in old and _ELSEWHERE.search(line):
            yield DeploymentDifference(
                line.split()[0],
                f"{show_line_of_deployment_file(line)} is new: this code comes from no package "
                f"index",
            )
    names = {_name_package(line) for line in new}
    for line in old:
        name = _name_package(line)
        if name is not None and name not in names and not _OPTION.match(line):
            yield DeploymentDifference(
                "", f"`{name}` is no longer installed: what needs it fails, or does without"
            )


def _list_requirement_lines(text: str) -> list[str]:
    joined = re.sub(r"\\[^\S\n]*\n", " ", text)
    lines = (line.partition(" #")[0].strip() for line in joined.splitlines())
    # A hash only names a form of the same package.
    return [re.sub(r"\s+--hash=\S+", "", line) for line in lines if line and line[0] != "#"]


def _name_package(line: str) -> str | None:
    found = _PACKAGE.match(line)
    return normalize_package_name(found[1]) if found is not None else None


def list_differences_of_script_file(
    before: str | None, after: str
) -> Iterator[DeploymentDifference]:
    """Finds line ends of Windows, with which no shell runs a script."""
    if "\r\n" in after and "\r\n" not in (before or ""):
        yield DeploymentDifference(
            "", "Its lines end as on Windows: a shell takes the end for a part of each command"
        )


# At most this many times a pattern is compared with a file; a person checks a file with more lines.
MOST_COMPARISONS = 2_000_000


def list_differences_of_owners_file(
    before: str, after: str, files: Sequence[str]
) -> Iterator[DeploymentDifference]:
    """Lists owners who are asked about less than before, because lines are gone or others win."""
    old, new = read_owner_lines(before), read_owner_lines(after)
    if (len(old) + len(new)) * len(files) > MOST_COMPARISONS:
        if _list_codeowner_words(old) != _list_codeowner_words(new):
            yield DeploymentDifference(
                "", "It has so many lines that nobody compared what each owner loses"
            )
        return
    known = _list_codeowner_words(old)
    owned_before: set[str] = set()
    owned_after: set[str] = set()
    lost: dict[str, str] = {}
    for path in files:
        was, now = find_owner_line(old, path), find_owner_line(new, path)
        owners = [set(line.owners) if line is not None else set() for line in (was, now)]
        owned_before |= owners[0]
        owned_after |= owners[1]
        # A new line that names somebody else hands these files over, and everybody sees it.
        if now is not None and now.owners and (now.pattern, now.owners) not in known:
            continue
        for owner in owners[0] - owners[1]:
            lost.setdefault(owner, path)
    for owner in owned_before - owned_after:
        lost.setdefault(owner, "any file")
    for owner, path in sorted(lost.items()):
        yield DeploymentDifference(
            owner,
            f"{owner} is no longer asked about `{path}`: the last line that matches a file counts",
        )


def _list_codeowner_words(lines: Sequence[OwnerLine]) -> list[tuple[str, tuple[str, ...]]]:
    return [(line.pattern, line.owners) for line in lines]


CHANGED = find_rule("deployment-changed")
_CLEARS = "the owner of the deployment confirms it"

# Files that run, although nobody can read them in a review.
_BINARIES = frozenset(
    {".whl", ".egg", ".jar", ".war", ".so", ".dll", ".dylib", ".pyd", ".pyc", ".exe", ".bin"}
)
_WORKFLOW = re.compile(r"^\.github/workflows/[^/]+\.ya?ml$")
_IMAGE = re.compile(r"(^|[./-])(dockerfile|containerfile)([./-]|$)", re.IGNORECASE)
_SITE = re.compile(r"-site\.xml$")
_SHELLS = frozenset({".sh", ".bash", ".zsh"})
_SHEBANG = re.compile(r"#!\S*/(env +)?\S*sh\b")
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "node_modules", "__pycache__", ".cache"})
MOST_FILES = 20_000


@on_file(CHANGED)
def find_changed_deployment_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds files that change how prod is built, started and guarded."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix.lower() in _BINARIES:
            yield from _observe_binary_file(inputs, path)
            continue
        if not is_file_read_by_a_rule(path):
            continue
        before, after = inputs.read_text_before(path), inputs.read_text_after(path)
        for difference in _list_differences_of_file(inputs, path, before, after):
            yield RuleObservation(
                CHANGED,
                f"{difference.sentence}.",
                _CLEARS,
                path=path,
                line=find_anchor_line(after or "", filter(None, (difference.anchor,))) or 1,
                subject=(difference.anchor, difference.sentence[:80]),
            )


def _observe_binary_file(inputs: RuleInputs, path: str) -> Iterator[RuleObservation]:
    if (inputs.repository / path).is_file():
        yield RuleObservation(
            CHANGED,
            f"`{path}` holds code that no review can read, and it is new or another one: its name "
            "and version may be as before.",
            "its content is known by the place that built it",
            path=path,
            line=1,
            subject=("binary",),
        )


def _list_differences_of_file(  # noqa: PLR0911, PLR0912 - one line for each kind of file reads best
    inputs: RuleInputs, path: str, before: str | None, after: str | None
) -> Iterator[DeploymentDifference]:
    name = PurePosixPath(path).name
    if _WORKFLOW.match(path):
        return list_differences_of_workflow_file(before, after)
    if after is None:
        return iter(())
    if name == ".dockerignore":
        return list_files_excluded_from_image(
            before, after, _list_files_of_checkout(inputs.repository)
        )
    if name == ".gitattributes":
        return list_differences_of_gitattributes_file(
            before, after, _list_files_of_checkout(inputs.repository)
        )
    if _is_shell_file(path, after):
        return list_differences_of_script_file(before, after)
    if before is None:
        return iter(())
    if path in CODEOWNERS_PLACES:
        return list_differences_of_owners_file(
            before, after, _list_files_of_checkout(inputs.repository)
        )
    if _IMAGE.search(name):
        return list_differences_of_image_file(before, after)
    if PurePosixPath(path).suffix in {".tf", ".hcl", ".tfvars"}:
        return list_differences_of_terraform_file(before, after)
    if _SITE.search(name):
        return list_differences_of_hadoop_file(before, after)
    if is_requirements_file(path):
        found = list_differences_of_requirements_file(before, after)
        return chain(found, list_hash_differences(before, after))
    if is_lock_file(path):
        return list_lock_differences(before, after)
    if (known := find_deployment_format(path, inputs.repository)) is not None:
        return list_pipeline_differences(known, before, after)
    if PurePosixPath(path).suffix in {".yaml", ".yml"} and is_manifest_file(after):
        return list_differences_of_manifest_file(before, after)
    return iter(())


def _is_shell_file(path: str, text: str) -> bool:
    return PurePosixPath(path).suffix in _SHELLS or _SHEBANG.match(text) is not None


@lru_cache(maxsize=2)
def _list_files_of_checkout(repository: Path) -> tuple[str, ...]:
    """Lists the files of the checkout, relative to it; only some if it is large."""
    found: list[str] = []
    for folder, folders, names in os.walk(repository):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        at = Path(folder).relative_to(repository)
        found += [(at / name).as_posix() for name in names]
        if len(found) >= MOST_FILES:
            break
    return tuple(found[:MOST_FILES])


@on_file(SPARK)
def find_spark_file_settings(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds settings in a spark-defaults.conf that change values or places, as in a connection."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix not in {".conf", ".properties"}:
            continue
        text = inputs.read_text_after(path)
        old, new = (
            read_spark_properties_file(one or "") for one in (inputs.read_text_before(path), text)
        )
        for key in sorted(old.keys() | new.keys()):
            was, now = old.get(key), new.get(key)
            if was == now or not _does_spark_setting_reach_data(
                key, str(was if now is None else now)
            ):
                continue
            yield RuleObservation(
                SPARK,
                f"{show_change_of_deployment_file((key,), was, now)}: the same query may give "
                "other results, or read and write elsewhere.",
                CONFIRM,
                path=path,
                line=find_anchor_line(text or "", (key,)),
                subject=(key,),
            )


def _does_spark_setting_reach_data(key: str, value: str) -> bool:
    meaning = find_effect_of_setting(key, value)
    unknown = meaning == "unknown" and key.lower().startswith("spark.sql.")
    return unknown or meaning in ("values", "places")
