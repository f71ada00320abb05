"""Compares planned files with those in a repository: new, the same, ours, or edited by people.

Each file ends with a line that says how it was made, with a checksum of the lines above. So a file
that nobody has edited can be written again, and one that somebody has edited is left alone.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.cli.setup.github_settings import LEVELS, SetupLevel
from ci_bot.bot.cli.setup.plan_files import PlannedSetupFile

# `new` is written. `changed` is one of ours that is written again, `moved` an edited one in which
# only pins change. `edited`, `same` and `kept` stay as they are. `foreign` makes the run refuse.
FileStatus = Literal["new", "same", "changed", "moved", "edited", "kept", "foreign"]

_MADE_BY = (
    r"(?m)^# Made by `ci-bot init --level (?P<level>\w+)(?P<projects>(?: --project [^\s`]+)*)"
    r"(?: --gateway (?P<gateway>[^\s`]+))?`; "
    r"checksum (?P<sum>[0-9a-f]{16})\."
)
_SIGNATURE = re.compile(_MADE_BY + r"\n?\Z")
# The same line if people have written below it, or saved it with other line ends.
_EDITED_SIGNATURE = re.compile(_MADE_BY + r"[ \t\r]*(?:\n|\Z)")
# `uses:` of a workflow, and a requirement from git.
_PIN = re.compile(
    r"(?P<name>(?:[\w.-]+/)+[\w.-]+)@(?P<commit>[0-9a-f]{40})(?P<version>[ \t]+#[ \t]*v[\w.+-]+)?"
)


@dataclass(frozen=True)
class ComparedSetupFile:
    """A planned file, and what happens to it.

    Attributes:
        text: What is written; None if nothing is.
        diff: The existing text against the one that would be written, if somebody has edited it.
    """

    planned: PlannedSetupFile
    status: FileStatus
    text: str | None = None
    diff: str = ""


@dataclass(frozen=True)
class SetupSignature:
    """The options that a file was made with."""

    level: SetupLevel
    projects: tuple[str, ...]
    gateway: str | None = None


def compare_setup_files(
    planned: Iterable[PlannedSetupFile],
    existing: Mapping[str, str],
    made_with: SetupSignature,
    *,
    upgrade: bool,
) -> list[ComparedSetupFile]:
    """Compares each planned file with the existing one, and says what happens to it.

    Args:
        existing: The texts of existing files, by path.
        upgrade: Whether pins move to those of this release; without it each file keeps its own.
    """
    return [
        _compare_setup_file(file, existing.get(file.path), made_with, upgrade) for file in planned
    ]


def sign_setup_file(text: str, made_with: SetupSignature) -> str:
    """Returns a file's text with its last line, which says how it was made."""
    options = "".join(f" --project {each}" for each in made_with.projects if each != ".")
    if made_with.gateway:
        options += f" --gateway {made_with.gateway}"
    return (
        f"{text}# Made by `ci-bot init --level {made_with.level}{options}`; "
        f"checksum {_compute_checksum(text)}.\n"
    )


def read_signature_of_setup_file(text: str) -> SetupSignature | None:
    """Reads the options that a file was made with; None if `ci-bot init` has not made it."""
    found = _SIGNATURE.search(text)
    if found is None:
        return None
    level = next((each for each in LEVELS if each == found["level"]), None)
    if level is None:
        return None
    projects = tuple(re.findall(r"--project (\S+)", found["projects"]))
    return SetupSignature(level, projects or (".",), found["gateway"])


def is_setup_file_unedited(text: str) -> bool:
    """Whether a file is still as `ci-bot init` has written it."""
    found = _SIGNATURE.search(text)
    return found is not None and _compute_checksum(text[: found.start()]) == found["sum"]


def move_pins_in_setup_file(text: str, source: str) -> str:
    """Returns a text with the commits that another one names for the same actions.

    The placeholder in the documents is no commit, so it replaces none.
    """
    known = {_get_key_of_pin(pin): pin for pin in _PIN.finditer(source) if pin["commit"].strip("0")}

    def move_pin(pin: re.Match[str]) -> str:
        other = known.get(_get_key_of_pin(pin))
        if other is None:
            return pin[0]
        return f"{other['name']}@{other['commit']}{other['version'] or ''}"

    return _PIN.sub(move_pin, text)


def _get_key_of_pin(pin: re.Match[str]) -> str:
    """Returns what stays the same when a pin moves; the owner of this action may change, too."""
    address = "https:" if pin["name"].startswith("github.com/") else "uses:"
    return address + re.sub(r"^.*?([\w.-]*sqlmesh-plan-review)", r"\1", pin["name"])


def _compare_setup_file(
    planned: PlannedSetupFile, there: str | None, made_with: SetupSignature, upgrade: bool
) -> ComparedSetupFile:
    if there is None:
        text = planned.text if planned.is_kept else sign_setup_file(planned.text, made_with)
        return ComparedSetupFile(planned, "new", text)
    if planned.is_kept:
        return ComparedSetupFile(planned, "kept")
    wanted = (
        planned.text if upgrade else move_pins_in_setup_file(planned.text, _strip_signature(there))
    )
    signed = sign_setup_file(wanted, made_with)
    if there == signed:
        return ComparedSetupFile(planned, "same")
    # An unchanged copy of the example counts as ours, too.
    if is_setup_file_unedited(there) or there == wanted:
        return ComparedSetupFile(planned, "changed", signed)
    if _EDITED_SIGNATURE.search(there) is None:
        return ComparedSetupFile(planned, "foreign")
    return _compare_edited_setup_file(planned, there, wanted, upgrade)


def _compare_edited_setup_file(
    planned: PlannedSetupFile, there: str, wanted: str, upgrade: bool
) -> ComparedSetupFile:
    """Compares an edited file, which stays; an upgrade only moves its pins."""
    moved = move_pins_in_setup_file(there, wanted) if upgrade else there
    diff = "".join(_make_diff_lines(_strip_signature(moved), wanted, planned.path))
    if moved != there:
        return ComparedSetupFile(planned, "moved", moved, diff)
    return ComparedSetupFile(planned, "edited", None, diff)


def _strip_signature(text: str) -> str:
    """Removes the line that says how a text was made; people may have written below it."""
    return _EDITED_SIGNATURE.sub("", text, count=1)


def _make_diff_lines(there: str, wanted: str, path: str) -> Iterator[str]:
    yield from difflib.unified_diff(
        there.splitlines(keepends=True),
        wanted.splitlines(keepends=True),
        f"{path} (as it stands)",
        f"{path} (as it would be written)",
        n=1,
    )


def _compute_checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
