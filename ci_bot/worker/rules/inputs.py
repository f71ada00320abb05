"""The inputs of the rules, and the budget and verdicts of a review's executions."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ci_bot.protocol.base import replace_undecodable_bytes
from ci_bot.protocol.files import LARGEST_FILE_BYTES, is_file_read_by_a_rule
from ci_bot.protocol.messages import Workplace
from ci_bot.worker.duckdb_trials import DATA_SETS, SECONDS_FOR_A_MODEL, DuckdbTrialVerdict
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.project import ProjectConfigFacts
from ci_bot.worker.rules.observation import NamedModel
from ci_bot.worker.runtime import exclude_from_load_trace
from ci_bot.worker.sql import plain_name
from ci_bot.worker.sql_effects import JudgedEffect

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.model import Model

    from ci_bot.worker.rules.source_columns import SourceTables

SECONDS_FOR_A_REVIEW = 20.0
# If less time is left, no further model is run.
_LEAST_SECONDS = 0.2
# The limits are counts of models and not seconds, so a report is the same each time. The first
# models get all data sets, which is enough for most reviews. The next ones get fewer, and the rest
# none.
_FIRST_MODELS, _MOST_MODELS = 4, 30
_FEWER_DATA_SETS = 15


@dataclass
class JudgedModels:
    """The verdicts of a review, by the model's fully qualified name; each model is run once.

    Attributes:
        seconds: processor time that is left for all models.
        seconds_for_a_model: the longest processor time for one model.
        clock: returns the used processor time in seconds.
        sources: known columns of the tables that queries read; made when the first model is run.
    """

    seconds: float = SECONDS_FOR_A_REVIEW
    seconds_for_a_model: float = SECONDS_FOR_A_MODEL
    clock: Callable[[], float] = time.thread_time
    found: dict[str, DuckdbTrialVerdict] = field(default_factory=dict)
    sources: SourceTables | None = None

    def judge_once(
        self, name: str, judge: Callable[[float, int], DuckdbTrialVerdict]
    ) -> DuckdbTrialVerdict:
        """Returns the verdict on a model; it is computed only the first time.

        Args:
            judge: runs the model; its arguments are the longest time in seconds and the number of
                data sets.
        """
        if name not in self.found:
            if self.seconds < _LEAST_SECONDS or len(self.found) >= _MOST_MODELS:
                reason = "more time than a review has for it"
                self.found[name] = DuckdbTrialVerdict("not_tried", reason=reason)
            else:
                started = self.clock()
                data_sets = DATA_SETS if len(self.found) < _FIRST_MODELS else _FEWER_DATA_SETS
                seconds = min(self.seconds, self.seconds_for_a_model)
                self.found[name] = judge(seconds, data_sets)
                self.seconds -= self.clock() - started
        return self.found[name]


ReadFile = Callable[[str], bytes | None]
ResultT = TypeVar("ResultT")


def read_file_of_absent_side(path: str) -> bytes | None:
    """Returns None: the reader of a side without files."""
    return None


@dataclass(frozen=True)
class RuleInputs:
    """The known facts about both sides of a change.

    Models are SQLMesh's, by fully qualified name: `before` from prod's snapshots, `after` from the
    head (empty with `loaded=False` if the head does not load). The name sets come from the plan. If
    there is no plan they are empty, and the rules compare the models themselves.

    Attributes:
        standalone_before, standalone_after: audits that belong to no model, by name, on both sides.
        repository: root of the checkout that `after` was loaded from.
        projects: project directories, relative to the repository.
        forward_only: changed models whose table in prod this plan alters in place.
        changed_files: paths of the PR's diff, relative to the repository; None if unknown.
        files_before, files_after: return the content of a file on that side; None if it is not
            there.
        config_before, config_after: the configurations, if they are known.
        statements: environment statements (when, sql, change) of the plan.
        judged: effects of the plan's statements on others. None if there is no plan: then the
            models' own statements are checked under the names of the project.
        all_changed_files: all paths of the diff, if `changed_files` has only one of them because
            each file is checked alone.
        copied_from: files that the change does not touch, and that `files_before` reads as well.
        opened: absolute paths of the files that the load has opened.
        readers: for each model of the head, the models that read it directly.
        from_base: models whose difference comes from the base branch; they are not judged.
        row_counts: known number of rows of each model, from the ledger of earlier applies.
        forward_only_plan: whether the plan makes every possible change forward-only.
        allowed_destructive: models whose tables the plan may alter destructively (the input
            `allow-destructive`), by fully qualified name.
        personal_schemas: schemas that may hold personal data; None if the policy names none.
        names: the names of models in reports.
        judged_models: the verdicts of execution on changed models, filled while rules run.
    """

    before: Mapping[str, Model]
    after: Mapping[str, Model]
    standalone_before: Mapping[str, StandaloneAudit] = field(default_factory=dict)
    standalone_after: Mapping[str, StandaloneAudit] = field(default_factory=dict)
    repository: Path = Path("/")
    projects: tuple[str, ...] = (".",)
    loaded: bool = True
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    direct: frozenset[str] = frozenset()
    indirect: frozenset[str] = frozenset()
    metadata: frozenset[str] = frozenset()
    categories: Mapping[str, str | None] = field(default_factory=dict)
    forward_only: frozenset[str] = frozenset()
    changed_files: tuple[str, ...] | None = None
    files_before: ReadFile = read_file_of_absent_side
    files_after: ReadFile = read_file_of_absent_side
    config_before: ProjectConfigFacts | None = None
    config_after: ProjectConfigFacts | None = None
    statements: tuple[tuple[str, str, str], ...] = ()
    judged: tuple[JudgedEffect, ...] | None = None
    all_changed_files: tuple[str, ...] = ()
    copied_from: tuple[str, ...] = ()
    opened: frozenset[str] = frozenset()
    readers: Mapping[str, set[str] | frozenset[str]] = field(default_factory=dict)
    default_dialect: str = ""
    from_base: frozenset[str] = frozenset()
    row_counts: Mapping[str, int] = field(default_factory=dict)
    forward_only_plan: bool = False
    allowed_destructive: frozenset[str] = frozenset()
    personal_schemas: tuple[str, ...] | None = None
    names: MessageNames = field(default_factory=lambda: MessageNames(None, None))
    judged_models: JudgedModels = field(default_factory=JudgedModels, repr=False, compare=False)
    # Shared with the inputs of each file, which are copies.
    _of_all_files: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    def compute_once(self, compute: Callable[[RuleInputs], ResultT]) -> ResultT:
        """Returns the result of a function over all changed files; each function runs only once.

        A rule that checks one file alone gets facts about the other files here.
        """
        if compute not in self._of_all_files:
            every = self.all_changed_files or self.changed_files or ()
            self._of_all_files[compute] = compute(replace(self, changed_files=every))
        found: ResultT = self._of_all_files[compute]
        return found

    def find_path(
        self, model: Model | ModelAudit | NamedModel | StandaloneAudit | None
    ) -> str | None:
        """Returns a model's or an audit's file, relative to the repository; None if it has none."""
        path = getattr(model, "_path", None)
        # A model from the state has no path, an audit from the state has an empty one.
        if path is None or Path(path) == Path():
            return None
        path = Path(path)
        if path.is_relative_to(self.repository):
            path = path.relative_to(self.repository)
        return replace_undecodable_bytes(path.as_posix())

    @cached_property
    def models_by_file(self) -> Mapping[str, Sequence[Model | NamedModel]]:
        """Maps the files that define the head's models to these models."""
        found: dict[str, list[Model]] = {}
        for model in self.after.values():
            path = self.find_path(model)
            if path is not None:
                found.setdefault(path, []).append(model)
        return found

    @cached_property
    def models_by_plain_name(self) -> Mapping[str, Collection[str]]:
        """Maps short names of the head's models, with or without a catalog, to their full names."""
        found: dict[str, set[str]] = {}
        for fqn in self.after:
            for name in (fqn, self.names.short_name(fqn)):
                found.setdefault(plain_name(name), set()).add(fqn)
        return found

    @cached_property
    def columns_by_schema(self) -> frozenset[tuple[str, str]]:
        """Holds (schema, column) of each column of prod's models, in lower case."""
        return frozenset(
            (parts[-2].strip('"`').lower(), str(column).lower())
            for fqn, model in self.before.items()
            for parts in [fqn.split(".")]
            if len(parts) > 1
            for column in model.columns_to_types or {}
        )

    def find_path_in_project(self, path: str) -> str | None:
        """Returns a path relative to the project that contains it; None if it is in no project."""
        for project in sorted(self.projects, key=len, reverse=True):
            root = PurePosixPath(project)
            if str(root) == ".":
                return path
            if PurePosixPath(path).is_relative_to(root):
                return PurePosixPath(path).relative_to(root).as_posix()
        return None

    def read_text_before(self, path: str) -> str | None:
        """Reads the file before the change as text, with undecodable bytes replaced.

        None if it is not there.
        """
        return _decode_content(self.files_before(path))

    def read_text_after(self, path: str) -> str | None:
        """Reads the file after the change as text, with undecodable bytes replaced.

        None if it is not there.
        """
        return _decode_content(self.files_after(path))


def _decode_content(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", errors="replace")


# Reading the files of a change, as data.


# Replaces a byte that is no UTF-8 in a name (`replace_undecodable_bytes`).
_REPLACED = "\ufffd"
# The contents of this many files of each side are kept; each may have `LARGEST_FILE_BYTES`.
_KEPT = 4


def make_base_reader(directory: str | None, unread: Collection[str] = ()) -> ReadFile:
    """Makes a reader of the base branch's version of the changed files.

    Args:
        unread: Files that the bot has found to be too large on either side of the change.
    """
    return (
        _make_reader_of_checkout_files([Path(directory)], unread)
        if directory
        else read_file_of_absent_side
    )


def make_head_reader(workplace: Workplace, unread: Collection[str] = ()) -> ReadFile:
    """Makes a reader of the head's files; large files of a copy are links to the original."""
    linked = [Path(workplace.linked_to)] if workplace.linked_to else []
    return _make_reader_of_checkout_files([Path(workplace.repository), *linked], unread)


def _make_reader_of_checkout_files(roots: list[Path], unread: Collection[str]) -> ReadFile:
    """Makes a reader of regular files below the first root.

    It does not follow links that leave all roots. For it, a file that is too large does not exist:
    if a rule read a part of a file, the rest would look deleted. The report says which files were
    not checked.
    """
    # `resolve` raises if a link leads to itself. One such file in a change must not keep a rule
    # from the other files.
    tops = [os.path.realpath(root) for root in roots]
    inside = tuple(f"{top.rstrip('/')}/" for top in tops)
    closed = frozenset(unread)

    # Many rules read the same file.
    @lru_cache(maxsize=_KEPT)
    def read_file(path: str) -> bytes | None:
        if path in closed or not is_file_read_by_a_rule(path):
            return None
        target = os.path.realpath(
            _find_named_file(tops[0], path) if _REPLACED in path else f"{tops[0]}/{path}"
        )
        file = Path(target)
        try:
            if not target.startswith(inside) or not stat.S_ISREG(file.stat().st_mode):
                return None
            with exclude_from_load_trace(), file.open("rb") as opened:
                content = opened.read(LARGEST_FILE_BYTES + 1)
        except OSError:
            return None
        return content if len(content) <= LARGEST_FILE_BYTES else None

    return read_file


def _find_named_file(top: str, path: str) -> str:
    """Finds the first file that has this name after bytes that are no UTF-8 are replaced."""
    found = top
    for part in path.split("/"):
        try:
            beside = Path(found).iterdir() if _REPLACED in part else ()
            names = sorted(entry.name for entry in beside)
        except OSError:
            names = []
        same = (name for name in names if replace_undecodable_bytes(name) == part)
        found = f"{found}/{next(same, part)}"
    return found
