"""Who causes that a project does not load: the pull request, or the base branch.

Both sides are loaded, and their failures are compared. A failure is old if the base branch fails
for the same cause and the pull request changed no file that the failure is about. A library that
this environment lacks is in no file: if the base branch needs the same one, it is old as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_bot.protocol.base import Failure

# This part of a message differs between two processes that fail in the same way.
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
OTHERS_SHOWN = 5
_MISSING_LIBRARY = "missing_module"
# Documentation and the like, which no part of SQLMesh reads.
_PROSE = frozenset(
    {
        ".md",
        ".markdown",
        ".rst",
        ".adoc",
        ".log",
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".svg",
        ".webp",
        ".pdf",
        ".drawio",
    }
)
_PROSE_NAMES = re.compile(
    r"^(?:README|CONTRIBUTING|LICENSE|LICENCE|NOTICE|AUTHORS|CONTRIBUTORS|"
    r"CODEOWNERS|CHANGELOG|CHANGES|HISTORY|TODO|"
    r"\.gitignore|\.gitattributes|\.editorconfig)(?:\.(?:txt|html))?$",
    re.IGNORECASE,
)
_PROSE_DIRECTORIES = frozenset({".github", ".vscode", ".idea", ".devcontainer"})


@dataclass(frozen=True)
class SortedFailuresForDecision:
    """The failures of a head, sorted by who causes them: `new` by the pull request."""

    new: tuple[Failure, ...]
    old: tuple[Failure, ...]


def sort_load_failures_for_decision(
    head: Sequence[Failure],
    base: Sequence[Failure] | None,
    changed_files: Collection[str] | None,
) -> SortedFailuresForDecision:
    """Separates the pull request's own failures from those that were there before it.

    Args:
        head: everything that keeps the pull request's project from being loaded.
        base: the same of the base branch; None if it was not loaded, and empty if it loads.
        changed_files: paths of the diff, relative to the repository; None if unknown.
    """
    if not base or changed_files is None:
        return SortedFailuresForDecision(tuple(head), ())
    known = {_describe_cause(failure) for failure in base}
    lacked = {
        _describe_cause(failure) for failure in base if failure.reason_code == _MISSING_LIBRARY
    }
    # If the base branch's configuration is broken, all later failures were hidden until now.
    hidden = all(failure.stage == "configuration" for failure in base)
    elsewhere = is_change_unread_by_sqlmesh(changed_files)
    old = [
        failure
        for failure in head
        if elsewhere
        or _describe_cause(failure) in lacked
        or (
            not _is_failure_touched(failure, changed_files)
            and (_describe_cause(failure) in known or (hidden and failure.stage != "configuration"))
        )
    ]
    new = [failure for failure in head if failure not in old]
    return SortedFailuresForDecision(
        tuple(sorted(new, key=lambda f: _get_order_of_load_failure(f, changed_files))), tuple(old)
    )


def combine_load_failures_for_decision(
    found: SortedFailuresForDecision, *, base_is_broken: bool
) -> Failure:
    """Combines the pull request's own failures: the first, with the names of the others."""
    first, *others = sorted(found.new, key=_rank_load_failure)
    also = sorted({failure.path for failure in others if failure.path} - {first.path})
    lines = [first.message]
    if also:
        rest = f" and {len(also) - OTHERS_SHOWN} more" if len(also) > OTHERS_SHOWN else ""
        lines.append(f"Also failing: {', '.join(also[:OTHERS_SHOWN])}{rest}.")
    if base_is_broken:
        same = f"; {len(found.old)} of its failures are here unchanged" if found.old else ""
        lines.append(f"The base branch does not load either{same}.")
    return first.model_copy(update={"message": "\n\n".join(lines)})


def is_change_unread_by_sqlmesh(changed_files: Collection[str] | None) -> bool:
    """Whether SQLMesh reads none of the changed files: documentation, or settings of the forge."""
    return changed_files is not None and all(map(_is_prose, changed_files))


def _is_prose(path: str) -> bool:
    file = PurePosixPath(path)
    return (
        file.suffix.lower() in _PROSE
        or bool(_PROSE_NAMES.match(file.name))
        or file.parts[0] in _PROSE_DIRECTORIES
    )


def _rank_load_failure(failure: Failure) -> tuple[bool, bool, bool, str, int]:
    """Ranks failures that may cause others first, then by place: the order of finding is random."""
    path = failure.path or ""
    late = failure.stage != "configuration"
    return late, not path, path.endswith(".sql"), path, failure.line or 0


def _describe_cause(failure: Failure) -> str:
    """Describes what went wrong, without the place: many files may fail for one cause."""
    text = failure.message.replace(failure.path, "") if failure.path else failure.message
    return _ADDRESS.sub("0x", text)


def _is_failure_touched(failure: Failure, changed_files: Collection[str]) -> bool:
    """Whether a file was changed in which the failure is, or which its message names."""
    return failure.path in changed_files or any(
        re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", failure.message)
        for path in changed_files
    )


def _get_order_of_load_failure(
    failure: Failure, changed_files: Collection[str]
) -> tuple[bool, str]:
    """Sorts the pull request's own files first; then by name, so equal facts give equal texts."""
    return failure.path not in changed_files, failure.path or ""
