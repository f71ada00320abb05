"""The projects that were named on a command line, and the repository that they lie in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ci_bot.bot.cage.workspace import directory_problem
from ci_bot.errors import BadInput


def repository_root(start: Path) -> Path:
    """The repository that holds `start` on a laptop; `start` itself outside of any."""
    for directory in (start, *start.parents):
        if os.path.exists(directory / ".git"):  # noqa: PTH110 - False also where we may not look
            return directory
    return start


def relative_projects(paths: Iterable[str], directory: Path) -> tuple[Path, tuple[str, ...]]:
    """The repository's root and the projects relative to it, from paths typed on a command line.

    Raises:
        BadInput: one is no directory, or they do not lie in one repository.
    """
    given = list(paths)
    problems = [found for path in given if (found := directory_problem(directory / path, path))]
    if problems:
        raise BadInput(
            f"{'; '.join(problems)}.",
            hint="`--project` names the directory of a SQLMesh project.",
            reason_code="bad_project_path",
        )
    absolute = [Path(os.path.realpath(directory / path)) for path in given]
    roots = {repository_root(path) for path in absolute}
    common = [root for root in roots if all(path.is_relative_to(root) for path in absolute)]
    if not common:
        raise BadInput(
            "Several projects are planned together in one git repository only, and "
            f"{_where(given, absolute)}.",
            hint="Give projects of one checkout, or run ci-bot once for each.",
            reason_code="several_repositories",
        )
    return common[0], tuple(os.path.relpath(path, common[0]) for path in absolute)


def _where(given: list[str], absolute: list[Path]) -> str:
    """Which of these projects are not where they should be, as the end of a sentence."""
    outside = [
        path
        for path, place in zip(given, absolute, strict=True)
        if not (repository_root(place) / ".git").exists()
    ]
    names = " and ".join(f"`{path}`" for path in outside or given)
    if outside:
        return f"{names} {'is' if len(outside) == 1 else 'are'} in none"
    return f"{names} are in different ones"
