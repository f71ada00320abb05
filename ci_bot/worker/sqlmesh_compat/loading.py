"""Facts that SQLMesh's loader does not report: every model that fails, not just the first."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh.core import constants as c
from sqlmesh.core import loader
from sqlmesh.core.context import Context
from sqlmesh.core.macros import macro
from sqlmesh.core.signal import signal
from sqlmesh.utils.errors import ConfigError

if TYPE_CHECKING:
    from sqlmesh.core.config import Config


@contextmanager
def collect_sqlmesh_model_failures(found: list[tuple[Path, BaseException]]) -> Iterator[None]:
    """Collects each SQL model that does not load inside this block.

    SQLMesh hands all files to a pool, and raises the failure that it meets first.
    (`SqlMeshLoader._load_sql_models`, `create_process_pool_executor`)
    """
    module: Any = loader
    make = module.create_process_pool_executor

    def make_noting_pool(*arguments: Any, **options: Any) -> Any:
        made = make(*arguments, **options)
        submit = made.submit

        def submit_and_note(work: Any, path: Path) -> Future[Any]:
            future: Future[Any] = submit(work, path)
            future.add_done_callback(lambda done: note_failure(path, done))
            return future

        made.submit = submit_and_note
        return made

    def note_failure(path: Path, done: Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            found.append((path, error))

    module.create_process_pool_executor = make_noting_pool
    try:
        yield
    finally:
        module.create_process_pool_executor = make


def make_sqlmesh_load_error(path: Path, problem: BaseException) -> ConfigError:
    """Makes the error that SQLMesh raises if `problem` keeps the model in `path` from loading.

    (`Loader._failed_to_load_model_error`, which needs nothing of the loader itself)
    """
    text = loader.Loader._failed_to_load_model_error(None, path, problem)  # type: ignore[arg-type]
    error = ConfigError(text, path)
    error.__cause__ = problem
    return error


def let_sqlmesh_ignore_files(configs: dict[Path, Config], files: Sequence[Path]) -> None:
    """Makes the next load skip these files. (`Loader._glob_paths`)"""
    for config in configs.values():
        config.ignore_patterns = [
            *config.ignore_patterns,
            *(glob.escape(str(path)) for path in files),
        ]


@contextmanager
def restore_sqlmesh_registries() -> Iterator[None]:
    """Restores the registries of macros and signals, which a failed load leaves filled.

    (`SqlMeshLoader._load_scripts` and `_load_signals` restore them only if they come to an end)
    """
    kept = [(kind, kind.get_registry()) for kind in (macro, signal)]
    try:
        yield
    finally:
        for kind, registry in kept:
            kind.set_registry(registry)


def order_sqlmesh_models(context: Context) -> None:
    """Puts the loaded models in the order of their names.

    SQLMesh's own order depends on the timing of its processes, so a report by model would change
    each time. (`SqlMeshLoader._load_sql_models`, `UniqueKeyDict`)
    """
    models = sorted(context._models.items())
    context._models.clear()
    context._models.update(models)


def list_tests_that_sqlmesh_loaded(context: Context) -> list[Any]:
    """The project's unit tests. (`Context.select_tests` since 0.228, `load_model_tests` before)"""
    either: Any = context
    read = getattr(either, "select_tests", None) or either.load_model_tests
    return list(read())


# Models of other projects in the state, and whether they load here.


@dataclass(frozen=True)
class FailingNode:
    """A node of prod that is in no loaded project, and the error of its recorded code.

    Attributes:
        name: fully qualified.
        project: None if the record itself cannot be read.
    """

    name: str
    project: str | None
    error: Exception


def find_failing_sqlmesh_nodes_of_others(context: Context, state: Any) -> Iterator[FailingNode]:
    """Yields the nodes of other projects in prod that cannot be read from the state or rendered.

    Args:
        context: Holds the models of the loaded projects, and nothing from the state.

    (`Context.load`, which merges those nodes into the project's own)
    """
    prod = state.get_environment(c.PROD)
    own = {str(config.project or "") for config in context.configs.values()}
    if prod is None or not any(own):
        return
    absent = [
        info
        for info in prod.snapshots
        if info.name not in context._models and info.name not in context._standalone_audits
    ]
    for info in absent:
        node: Any = None
        try:
            (snapshot,) = state.get_snapshots([info]).values()
            node = snapshot.node
            if node.project not in own:
                _exercise_sqlmesh_node(node)
        except Exception as error:
            yield FailingNode(str(info.name), None if node is None else str(node.project), error)


def _exercise_sqlmesh_node(node: Any) -> Collection[str]:
    """Runs a node's code as loading and planning do, so that its errors appear."""
    read: Collection[str] = node.depends_on
    if hasattr(node, "render_query"):
        node.render_query()
    _ = node.data_hash, node.metadata_hash
    return read
