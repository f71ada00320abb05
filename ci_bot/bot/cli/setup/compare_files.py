"""What stands in a repository beside what is planned: new, the same, ours, or edited by people.

Each file ends in a line that says how it was made, with a checksum of the lines above. So a file
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

# `new` is written, `changed` is one of ours that is written again, `moved` an edited one in which
# only pins move. `edited`, `same` and `kept` stay as they are, and a `foreign` one refuses the run.
FileStatus = Literal["new", "same", "changed", "moved", "edited", "kept", "foreign"]

_MADE_BY = (
    r"(?m)^# Made by `ci-bot init --level (?P<level>\w+)(?P<projects>(?: --project [^\s`]+)*)"
    r"(?: --gateway (?P<gateway>[^\s`]+))?`; "
    r"checksum (?P<sum>[0-9a-f]{16})\."
)
_SIGNATURE = re.compile(_MADE_BY + r"\n?\Z")
# The same line where people have written below it, or saved it with other line ends.
_EDITED_SIGNATURE = re.compile(_MADE_BY + r"[ \t\r]*(?:\n|\Z)")
# `uses:` of a workflow, and a requirement from git.
_PIN = re.compile(
    r"(?P<name>(?:[\w.-]+/)+[\w.-]+)@(?P<commit>[0-9a-f]{40})(?P<version>[ \t]+#[ \t]*v[\w.+-]+)?"
)


@dataclass(frozen=True)
class ComparedSetupFile:
    """A planned file, and what becomes of it.

    Attributes:
        text: What is to be written; None if nothing is.
        diff: What stands there against what would be written, where somebody has edited it.
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
    """What becomes of each planned file.

    Args:
        existing: The texts that are there, by their path.
        upgrade: Whether pins move to those of this release; without it each file keeps its own.
    """
    return [
        _compare_setup_file(file, existing.get(file.path), made_with, upgrade) for file in planned
    ]


def sign_setup_file(text: str, made_with: SetupSignature) -> str:
    """A file's text with its last line, which says how it was made."""
    options = "".join(f" --project {each}" for each in made_with.projects if each != ".")
    if made_with.gateway:
        options += f" --gateway {made_with.gateway}"
    return (
        f"{text}# Made by `ci-bot init --level {made_with.level}{options}`; "
        f"checksum {_compute_checksum(text)}.\n"
    )


def read_signature_of_setup_file(text: str) -> SetupSignature | None:
    """The options that a file was made with; None where `ci-bot init` has not made it."""
    found = _SIGNATURE.search(text)
    if found is None:
        return None
    level = next((each for each in LEVELS if each == found["level"]), None)
    if level is None:
        return None
    projects = tuple(re.findall(r"--project (\S+)", found["projects"]))
    return SetupSignature(level, projects or (".",), found["gateway"])


def is_setup_file_unedited(text: str) -> bool:
    """Whether a file is as `ci-bot init` has written it."""
    found = _SIGNATURE.search(text)
    return found is not None and _compute_checksum(text[: found.start()]) == found["sum"]


def move_pins_in_setup_file(text: str, source: str) -> str:
    """A text with the commits that another one names for the same actions.

    The placeholder of the documents is no commit, and moves nothing.
    """
    known = {_get_key_of_pin(pin): pin for pin in _PIN.finditer(source) if pin["commit"].strip("0")}

    def move_pin(pin: re.Match[str]) -> str:
        other = known.get(_get_key_of_pin(pin))
        if other is None:
            return pin[0]
        return f"{other['name']}@{other['commit']}{other['version'] or ''}"

    return _PIN.sub(move_pin, text)


def _get_key_of_pin(pin: re.Match[str]) -> str:
    """What stays the same when a pin moves: of this action also its owner may be another one."""
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
    # A copy of the example, as it is, is ours, too.
    if is_setup_file_unedited(there) or there == wanted:
        return ComparedSetupFile(planned, "changed", signed)
    if _EDITED_SIGNATURE.search(there) is None:
        return ComparedSetupFile(planned, "foreign")
    return _compare_edited_setup_file(planned, there, wanted, upgrade)


def _compare_edited_setup_file(
    planned: PlannedSetupFile, there: str, wanted: str, upgrade: bool
) -> ComparedSetupFile:
    """An edited file stays; an upgrade moves its pins only."""
    moved = move_pins_in_setup_file(there, wanted) if upgrade else there
    diff = "".join(_make_diff_lines(_strip_signature(moved), wanted, planned.path))
    if moved != there:
        return ComparedSetupFile(planned, "moved", moved, diff)
    return ComparedSetupFile(planned, "edited", None, diff)


def _strip_signature(text: str) -> str:
    """A text without the line that says how it was made; people may have written below it."""
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
