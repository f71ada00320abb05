"""Files whose content the plan does not see, and files that no rule has read.

The plan does not see files behind a pattern, in Git LFS, or read only by a run. Rules do not read
files that are nested deeper than a parser can follow.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.project import (
    FIX,
    list_lfs_pointers,
    list_lfs_pointers_named_in_project,
    list_lfs_pointers_that_project_loads,
    list_project_files_below,
    list_seed_files_of_project,
)
from ci_bot.worker.rules.changes.runs import BUILT_AGAIN, CHANGED_IN_RUNS
from ci_bot.worker.rules.files.configuration import (
    is_configuration_file_of_project,
    iterate_changed_configurations,
    replace_templates_in_configuration_file,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import CRASHED, on_file, on_file_and_models, on_project
from ci_bot.worker.sql import is_too_deep
from ci_bot.worker.sqlmesh_compat import is_seed_model, is_sql_model
from ci_bot.yaml_reader import UnfitYaml, UnreadYaml, read_yaml

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

IGNORED = find_rule("files-ignored")
KEY = "ignore_patterns"
# Folders that SQLMesh loads, their files, and the effect if it does not see them.
_FOLDERS = (
    ("tests", (".yaml", ".yml"), "unit tests", "nothing runs them any more"),
    ("audits", (".sql",), "audits", "they check nothing any more"),
    ("models", (".sql", ".py"), "models", "they are no models of the project any more"),
    ("macros", (".sql", ".py"), "macros", "models cannot call them any more"),
    ("signals", (".py",), "signals", "models cannot wait for them any more"),
    ("metrics", (".sql",), "metrics", "they are not defined any more"),
)
# The plan itself shows these as removed models.
_PLANNED = frozenset({"models", "metrics"})
MOST_FILES = 20_000


@on_file(IGNORED)
def find_ignored_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds patterns of a YAML configuration that newly match files of the project."""
    for path, old, new in iterate_changed_configurations(inputs):
        if old is None or new is None:
            continue
        yield from _observe_file_patterns(
            inputs,
            path,
            PurePosixPath(path).parent,
            _list_file_patterns(old.get(KEY)),
            _list_file_patterns(new.get(KEY)),
        )


@on_project(IGNORED)
def find_files_ignored_by_objects(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds such patterns in a config.py, if both configurations are known."""
    before, after = inputs.config_before, inputs.config_after
    path = next(
        (p for p in inputs.changed_files or () if PurePosixPath(p).name == "config.py"), None
    )
    if before is None or after is None or path is None or KEY not in after.settings:
        return
    yield from _observe_file_patterns(
        inputs,
        path,
        PurePosixPath(path).parent,
        _list_file_patterns(before.settings.get(KEY)),
        _list_file_patterns(after.settings.get(KEY)),
    )


def _list_file_patterns(value: object) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value] if value else []
    return [str(item) for item in items]


def _observe_file_patterns(
    inputs: RuleInputs, path: str, project: PurePosixPath, old: list[str], new: list[str]
) -> Iterator[RuleObservation]:
    added = [pattern for pattern in new if pattern not in old]
    if not added:
        return
    root = inputs.repository / project
    for folder, suffixes, what, effect in _FOLDERS:
        files = _list_files_with_suffix(root / folder, suffixes)
        hidden = _list_files_left_out_by_loader(
            root, folder, files, added
        ) - _list_files_left_out_by_loader(root, folder, files, old)
        if hidden:
            shown = sorted(file.relative_to(root).as_posix() for file in hidden)
            severity: Severity | None = "medium" if folder in _PLANNED else None
            yield RuleObservation(
                IGNORED,
                f"`{KEY}` hides {what} that still exist ({quote_names(shown)}): {effect}.",
                "the pattern matches none of them, or they are deleted on purpose",
                severity=severity,
                path=path,
                line=find_anchor_line(inputs.read_text_after(path) or "", (*added, KEY)),
                subject=(folder,),
            )


def _list_files_with_suffix(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return []
    found: list[Path] = []
    for file in folder.rglob("*"):
        if file.suffix in suffixes and not file.name.startswith("__") and file.is_file():
            found.append(file)
        if len(found) >= MOST_FILES:
            break
    return sorted(found)


def _list_files_left_out_by_loader(
    root: Path, folder: str, files: Sequence[Path], patterns: Sequence[str]
) -> set[Path]:
    """Lists the files that SQLMesh's loader leaves out.

    The loader matches a pattern from the right, and also expands it from the project's root. For
    unit tests it only matches the pattern.
    """
    found: set[Path] = set()
    for pattern in filter(None, patterns):
        expanded = (
            set()
            if folder == "tests"
            # Path.glob refuses some patterns that SQLMesh accepts, and matches hidden files.
            else {*glob.glob(str(root / pattern), recursive=True)}  # noqa: PTH207
        )
        found |= {file for file in files if file.match(pattern) or str(file) in expanded}
    return found


# Files that the plan reads although the checkout has only a pointer of Git LFS.


POINTER = find_rule("lfs-pointer")


@on_file_and_models(POINTER)
def find_lfs_pointer_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds pointers that the plan reads as data or code, also if the change does not touch them.

    The files that the load has opened are known, and so are the seeds. If the project does not
    load, the files count that SQLMesh would load.
    """
    directories = [inputs.repository / project for project in inputs.projects]
    files = list_project_files_below(directories)
    seeds = list_seed_files_of_project(inputs.after.values())
    given = {*(Path(os.path.normpath(path)) for path in inputs.opened), *seeds}
    # Each file is checked once: most files that a load opens are below the project.
    found = list_lfs_pointers(files | given)
    below = [path for path in found if path in files]
    read = [path for path in found if path in given]
    if not inputs.loaded:
        read = sorted({*read, *list_lfs_pointers_that_project_loads(below)})
    if read:
        verb, them = ("is", "it") if len(read) == 1 else ("are", "them")
        yield RuleObservation(
            POINTER,
            f"{quote_names(_list_relative_paths(read, inputs))} {verb} in Git LFS, and the "
            f"checkout holds only a pointer for {them}. The plan takes the pointer's text for the "
            "content, and so would the tables that it builds and that prod takes over.",
            FIX,
            model=next((seeds[path] for path in read if path in seeds), None),
            path=_list_relative_paths(read, inputs)[0],
            line=1,
        )
    rest = list_lfs_pointers_named_in_project(
        [path for path in below if path not in read], directories
    )
    if rest:
        yield RuleObservation(
            POINTER,
            f"{quote_names(_list_relative_paths(rest, inputs))} in Git LFS: the checkout holds a "
            "pointer only, and a model or macro names the file. What reads it while a model runs "
            "gets the pointer's text.",
            FIX,
            severity="high",
            path=_list_relative_paths(rest, inputs)[0],
            line=1,
            subject=("named in code",),
        )


def _list_relative_paths(paths: Iterable[Path], inputs: RuleInputs) -> list[str]:
    return sorted(
        path.relative_to(inputs.repository).as_posix()
        if path.is_relative_to(inputs.repository)
        else path.as_posix()
        for path in paths
    )


# Files that a model reads while it runs: no hash of SQLMesh contains their content.


# Documents: a model's code may name them, but does not read them.
_DOCUMENTS = frozenset({".md", ".rst", ".adoc"})
_WORD = re.compile(r"\w+")
# Functions that list a directory's files, or read a directory as one table.
_LISTS = re.compile(
    r"\b(?:r|i)?glob\(|\b(?:listdir|scandir|iterdir|fwalk|files)\(|\bos\.walk\("
    r"|\b(?:dataset|read_parquet)\(|\.read\.\w+\("
)
_TEXT = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_MAGIC = re.compile(r"[*?]|\[[^\]]+\]")


@on_project(CHANGED_IN_RUNS)
def find_changed_run_time_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed files that the code of an unchanged model reads and that no load has opened.

    If the load opens a file, its content is in the rendered query or the stored code, and the plan
    compares that.
    """
    opened = {os.path.normpath(path) for path in inputs.opened}
    unread = [
        path
        for path in inputs.changed_files or ()
        if PurePosixPath(path).suffix not in _DOCUMENTS
        and os.path.normpath(inputs.repository / path) not in opened
    ]
    # The code is collected once, and only if it may name a file: a project has thousands of both.
    code = _collect_code_that_reads_files(inputs) if unread else {}
    words = {word for text in code.values() for word in _WORD.findall(text)}
    listings = {fqn: found for fqn, text in code.items() if (found := _read_listing(text))}
    for path in unread:
        for fqn, how in _list_readers_of_file(path, code, words, listings):
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
    """Names in code that lists directories: the last parts of its texts, and its patterns."""

    folders: frozenset[str]
    patterns: tuple[str, ...]

    def may_hold(self, path: PurePosixPath) -> bool:
        """Whether a file is in one of the directories, and its name matches a pattern."""
        if self.folders.isdisjoint(path.parts[:-1]):
            return False
        return not self.patterns or any(fnmatch(path.name, each) for each in self.patterns)


def _read_listing(code: str) -> _DirectoryListing | None:
    """Reads the texts of code that lists a directory; None if it lists none."""
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


def _list_readers_of_file(
    path: str, code: Mapping[str, str], words: set[str], listings: Mapping[str, _DirectoryListing]
) -> Iterator[tuple[str, str]]:
    """Lists the models whose code reads a file, each with the words for a sentence.

    Args:
        words: All words of all code; if a word of the file's name is not among them, no code names
            the file.
    """
    pure = PurePosixPath(path)
    may_be_named = pure.suffix and words.issuperset(_WORD.findall(pure.name))
    named = re.compile(rf"(?<![\w-]){re.escape(pure.name)}(?!\w)") if may_be_named else None
    # If no code names the file, only code that lists a directory counts.
    for fqn in listings if named is None else code:
        if named is not None and named.search(code[fqn]):
            yield fqn, "names"
        elif fqn in listings and listings[fqn].may_hold(pure):
            yield fqn, "lists the directory of"


def _collect_code_that_reads_files(inputs: RuleInputs) -> dict[str, str]:
    """Collects the stored code and the statements of each model without a change in the plan."""
    return {
        fqn: "\n".join(_list_code_that_reads_files(model))
        for fqn, model in sorted(inputs.after.items())
        if _is_reader_of_file_unchanged(inputs.before.get(fqn), model)
    }


def _is_reader_of_file_unchanged(before: Model | None, after: Model) -> bool:
    return before is not None and bool(before.data_hash == after.data_hash)


def _list_code_that_reads_files(model: Model) -> list[str]:
    if is_seed_model(model):
        return []  # its content is in its hash
    code = [item.payload for item in model.python_env.values()]
    if is_sql_model(model):
        code += [
            part.sql(dialect=model.dialect, comments=False)
            for part in (model.query, *model.pre_statements, *model.post_statements)
        ]
    return code


def find_unread_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed files that no rule could read.

    It runs before all rules, as one of them. For such a file it means nothing if other rules find
    nothing.
    """
    for path in inputs.changed_files or ():
        why = _explain_unread_file(inputs, path) if is_file_read_by_a_rule(path) else None
        if why is not None:
            yield RuleObservation(
                CRASHED,
                f"No rule has read `{path}`: {why}.",
                "it is written without such nesting, or somebody has read it",
                severity="high",
                path=path,
                line=1,
                subject=("nesting",),
            )


def _explain_unread_file(inputs: RuleInputs, path: str) -> str | None:
    """Explains why no rule could read a changed Python or YAML file; None if rules could."""
    text = inputs.read_text_after(path)
    if text is None:
        return None
    inside = PurePosixPath(inputs.find_path_in_project(path) or "/")
    if inside.suffix == ".py":
        return "it is nested deeper than Python's own parser follows" if is_too_deep(text) else None
    is_test = inside.parts[0] == "tests" and inside.suffix in (".yaml", ".yml")
    if not is_test and not is_configuration_file_of_project(inputs, path):
        return None
    try:
        read_yaml(replace_templates_in_configuration_file(text))
    except UnreadYaml as unread:
        return unread.message
    except UnfitYaml:
        return None  # no YAML: the load fails, or the test does
    return None
