"""Files that a model reads while it runs: no hash of SQLMesh's holds their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ci_bot.worker.rules.changes.run_renderings import BUILT_AGAIN, CHANGED_IN_RUNS
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_project
from ci_bot.worker.sqlmesh_compat import is_seed_model, is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Words for people: a model's code may name them, and reads no numbers from them.
_DOCUMENTS = frozenset({".md", ".rst", ".adoc"})
_WORD = re.compile(r"\w+")
# Python's ways to find the files of a directory, and readers of a directory as one table.
_LISTS = re.compile(
    r"\b(?:r|i)?glob\(|\b(?:listdir|scandir|iterdir|fwalk|files)\(|\bos\.walk\("
    r"|\b(?:dataset|read_parquet)\(|\.read\.\w+\("
)
_TEXT = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_MAGIC = re.compile(r"[*?]|\[[^\]]+\]")


@on_project(CHANGED_IN_RUNS)
def find_changed_run_time_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Changed files that an unchanged model's code names or lists, and that no load has opened.

    What the load opens is in the rendered query or the stored code, and the plan compares it.
    """
    opened = {os.path.normpath(path) for path in inputs.opened}
    unread = [
        path
        for path in inputs.changed_files or ()
        if PurePosixPath(path).suffix not in _DOCUMENTS
        and os.path.normpath(inputs.repository / path) not in opened
    ]
    # Rendered once, and only if a file may be named: a project may have thousands of both.
    code = _collect_unchanged_code(inputs) if unread else {}
    words = {word for text in code.values() for word in _WORD.findall(text)}
    listings = {fqn: found for fqn, text in code.items() if (found := _read_listing(text))}
    for path in unread:
        for fqn, how in _list_readers(path, code, words, listings):
            yield RuleObservation(
                CHANGED_IN_RUNS,
                f"The model's code {how} {quote_names([path])}, which the load does not read: the "
                "next run takes its new content. SQLMesh sees no change and builds nothing, so an "
                "apply does not show it.",
                BUILT_AGAIN,
                model=inputs.after[fqn],
                path=path,
                line=1,
                subject=(path,),
            )


@dataclass(frozen=True)
class _DirectoryListing:
    """What code that lists directories names: the last parts of its texts, and its patterns."""

    folders: frozenset[str]
    patterns: tuple[str, ...]

    def may_hold(self, path: PurePosixPath) -> bool:
        """Whether a file is in one of the directories, and of the names that are looked for."""
        if self.folders.isdisjoint(path.parts[:-1]):
            return False
        return not self.patterns or any(fnmatch(path.name, each) for each in self.patterns)


def _read_listing(code: str) -> _DirectoryListing | None:
    """The texts of code that finds files by listing a directory; None if it lists none."""
    if not _LISTS.search(code):
        return None
    texts = [one[1] or one[2] for one in _TEXT.finditer(code)]
    plain = [text for text in texts if not _MAGIC.search(text)]
    folders = {PurePosixPath(text).name for text in plain}
    # `data/bonus/*.json` names the directory before its pattern.
    folders |= {
        part
        for text in texts
        if _MAGIC.search(text)
        for part in PurePosixPath(text).parts[:-1]
        if not _MAGIC.search(part)
    }
    patterns = tuple(PurePosixPath(text).name for text in texts if _MAGIC.search(text))
    return _DirectoryListing(frozenset(folders - {""}), patterns)


def _list_readers(
    path: str, code: Mapping[str, str], words: set[str], listings: Mapping[str, _DirectoryListing]
) -> Iterator[tuple[str, str]]:
    """The models whose code reaches a file, each with how it does.

    Args:
        words: All words of all code; a name that has another one stands in none of it.
    """
    pure = PurePosixPath(path)
    may_be_named = pure.suffix and words.issuperset(_WORD.findall(pure.name))
    named = re.compile(rf"(?<![\w-]){re.escape(pure.name)}(?!\w)") if may_be_named else None
    # Without a name to look for, only the few that list a directory count.
    for fqn in listings if named is None else code:
        if named is not None and named.search(code[fqn]):
            yield fqn, "names"
        elif fqn in listings and listings[fqn].may_hold(pure):
            yield fqn, "lists the directory of"


def _collect_unchanged_code(inputs: RuleInputs) -> dict[str, str]:
    """The stored code and the statements of each model that the plan takes for unchanged."""
    return {
        fqn: "\n".join(_list_code(model))
        for fqn, model in sorted(inputs.after.items())
        if _is_unchanged(inputs.before.get(fqn), model)
    }


def _is_unchanged(before: Model | None, after: Model) -> bool:
    return before is not None and bool(before.data_hash == after.data_hash)


def _list_code(model: Model) -> list[str]:
    if is_seed_model(model):
        return []  # its content is in its hash
    code = [item.payload for item in model.python_env.values()]
    if is_sql_model(model):
        code += [
            part.sql(dialect=model.dialect, comments=False)
            for part in (model.query, *model.pre_statements, *model.post_statements)
        ]
    return code
