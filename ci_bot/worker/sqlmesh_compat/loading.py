"""Facts that SQLMesh's loader does not report: every model that fails, not just the first; and unit
tests that are in no file.
"""

from __future__ import annotations

import glob
import unittest
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh.core import constants as c
from sqlmesh.core import loader
from sqlmesh.core.config.connection import BaseDuckDBConnectionConfig
from sqlmesh.core.macros import macro
from sqlmesh.core.signal import signal
from sqlmesh.core.test.definition import ModelTest
from sqlmesh.utils import UniqueKeyDict, yaml
from sqlmesh.utils.errors import ConfigError

if TYPE_CHECKING:
    from sqlmesh.core.config import Config
    from sqlmesh.core.context import Context
    from sqlmesh.core.model import Model
    from sqlmesh.core.state_sync import StateReader
    from sqlmesh.core.test import ModelTestMetadata


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

    (`SqlMeshLoader._load_scripts` and `_load_signals` restore them only if nothing fails)
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


def list_tests_that_sqlmesh_loaded(context: Context) -> list[ModelTestMetadata]:
    """Lists the project's unit tests.

    (`Context.select_tests` since 0.228, `load_model_tests` before)
    """
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


def find_failing_sqlmesh_nodes_of_others(
    context: Context, state: StateReader
) -> Iterator[FailingNode]:
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


def _exercise_sqlmesh_node(node: Any) -> None:
    """Runs a node's code as loading and planning do, so that its errors appear."""
    _ = node.depends_on
    if hasattr(node, "render_query"):
        node.render_query()
    _ = node.data_hash, node.metadata_hash


def do_sqlmesh_tests_run_in_memory(context: Context) -> bool:
    """Whether the project's unit tests run on an in-memory DuckDB."""
    connection = context.test_connection_config
    if not isinstance(connection, BaseDuckDBConnectionConfig) or connection.type_ != "duckdb":
        return False
    places = [connection.database, *(connection.catalogs or {}).values()]
    return all(place in (None, ":memory:") for place in places)


def run_sqlmesh_test_alone(context: Context, models: Mapping[str, Model], text: str) -> str | None:
    """Runs the only test of a YAML text on other models; returns its failure as one line, None if
    it passes.

    (`ModelTest.create_test`, which `Context.test` calls)
    """
    ((name, body),) = yaml.load(text).items()
    adapter = context.test_connection_config.create_engine_adapter(register_comments_override=False)
    try:
        test = ModelTest.create_test(
            body=body,
            test_name=name,
            models=UniqueKeyDict("models", **models),
            engine_adapter=adapter,
            dialect=context.default_dialect,
            path=None,
            default_catalog=context.default_catalog,
        )
        if test is None:
            return "the model is not known"
        result = unittest.TestResult()
        test.run(result)
    except Exception as error:  # the model's code runs in it, and may raise anything
        return _read_first_line_of_test(str(error)) or type(error).__name__
    finally:
        adapter.close()
    failed = [*result.failures, *result.errors]
    return (
        _read_first_line_of_test(failed[0][1].strip().rpartition("Error: ")[2]) if failed else None
    )


def _read_first_line_of_test(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
