"""Selections of models by what has changed since a branch (`git:main`), where git is not there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from sqlmesh.core.context import Context

from ci_bot.errors import BadInput
from ci_bot.secrets.cutting import quoted_value


class _ChangedFiles:
    """Stands in a selector's place for git, with the files that are known to have changed.

    (`GitClient`, of which a selector asks these three)
    """

    def __init__(self, files: Iterable[Path] | None, bases: Collection[str]) -> None:
        # A file that is gone is the file of no model any more; SQLMesh leaves it out, too.
        self._files = None if files is None else [path for path in files if path.exists()]
        self._bases = bases

    def list_untracked_files(self) -> list[Path]:
        return []

    def list_uncommitted_changed_files(self) -> list[Path]:
        return []

    def list_committed_changed_files(self, target_branch: str = "main") -> list[Path]:
        known = " or ".join(f"`git:{name}`" for name in self._bases)
        if target_branch not in self._bases:
            raise BadInput(
                f"A selection names {quoted_value(f'git:{target_branch}')}, and what is known is "
                "what the pull request changes against its own base branch.",
                hint=f"Write {known}.",
                reason_code="bad_selection",
            )
        if self._files is None:
            raise BadInput(
                f"Which files the pull request changes is not known, so {known} selects nothing.",
                hint="Check out with `fetch-depth: 2`, so that the merge commit has its first "
                "parent.",
                reason_code="no_base",
            )
        return self._files


def select_by_changed_files(
    context: Context, files: Iterable[Path] | None, bases: Collection[str]
) -> None:
    """Lets `git:<base>` in this context's selections stand for these files.

    Without this SQLMesh asks git, in the project's directory. (`GenericContext._new_selector`,
    `Selector._git_client`)

    Args:
        files: absolute paths, as the context's models have theirs; None: not known.
        bases: how a selection may call the base.
    """
    made: Any = context._new_selector
    known = _ChangedFiles(files, bases)

    def selector(*args: Any, **more: Any) -> Any:
        found = made(*args, **more)
        found._git_client = known
        return found

    patched: Any = context
    patched._new_selector = selector
