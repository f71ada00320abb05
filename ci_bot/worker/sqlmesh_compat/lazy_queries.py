"""Queries that are parsed from their files on use: most models need only their text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.dialect import JinjaQuery, parse
from sqlmesh.core.model.common import ParsableSql
from sqlmesh.core.model.definition import SqlModel
from sqlmesh.utils.metaprogramming import ExecutableKind

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


class QueryInFile(ParsableSql):
    """A query whose tree, with comments and positions, is parsed again on use.

    The loading process had the tree; a tree is four fifths of the bytes of a model that is sent to
    another process.
    """

    _path: Path = Path()
    _file_dialect: str = ""
    _lists_columns: bool = False

    @property
    def lists_columns(self) -> bool:
        """Whether the tree lists its columns; see the function `lists_columns`."""
        return self._lists_columns

    def parse(self, dialect: str) -> Any:
        if self._parsed is None and self._parsed_dialect == dialect:
            self._parsed = self._parse_from_file()
        return super().parse(dialect)

    def _parse_from_file(self) -> Any:
        """Parses the tree from the file; None if the file has changed, and then the loaded text
        counts.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
            found = parse(text, default_dialect=self._file_dialect)
        except Exception:
            return None
        return next((query for query in found if _is_query(query, self.sql)), None)


def leave_in_file(model: SqlModel, *, file_dialect: str, lists_columns: bool) -> None:
    """Removes the tree from a SQL model that is the only one of its file.

    Args:
        file_dialect: The project's, for files that name none. (`load_sql_models`)
        lists_columns: see the function `lists_columns`.
    """
    whole = model.query_
    if _is_query(whole._parsed, whole.sql):
        left = make_query_in_file(model, file_dialect=file_dialect, lists_columns=lists_columns)
        left._parsed_dialect = whole._parsed_dialect
        vars(model)["query_"] = left  # models are frozen


def make_query_in_file(model: SqlModel, *, file_dialect: str, lists_columns: bool) -> QueryInFile:
    """Makes the query of a SQL model without its tree; the arguments are those of
    `leave_in_file`.
    """
    whole = model.query_
    left = QueryInFile(sql=whole.sql, transaction=whole.transaction)
    left._path, left._file_dialect = Path(model._path or ""), file_dialect
    left._lists_columns, left._parsed_dialect = lists_columns, model.dialect
    return left


def _is_query(found: Any, sql: str) -> bool:
    return isinstance(found, exp.Query) and found.meta.get("sql") == sql


# Facts of a model's definition that need no rendering.


def is_pure(model: Model) -> TypeGuard[SqlModel]:
    """Whether only the model itself decides its query: code of the project can read a file or a
    clock, so its result is not known before it runs.
    """
    return (
        isinstance(model, SqlModel)
        and not model.kind.is_custom
        and (isinstance(model.query_, QueryInFile) or not isinstance(model.query, JinjaQuery))
        and not model.jinja_macros.root_macros
        and not model.jinja_macros.packages
        and all(item.kind == ExecutableKind.VALUE for item in model.python_env.values())
    )


def lists_columns(model: SqlModel) -> bool:
    """Whether the query of a SQL model shows all its columns: each has a name of its own, and
    neither a star nor a macro may stand for others."""
    if isinstance(model.query_, QueryInFile):
        return model.query_.lists_columns
    if "@" in model.query_.sql or not isinstance(model.query, exp.Select):
        return False
    columns = model.query.expressions
    names = {column.output_name.lower() for column in columns}
    return bool(
        columns
        and all(type(column) in (exp.Alias, exp.Column) for column in columns)
        and len(names) == len(columns)
        and not names & {"", "*"}
    )


# The tables that a query without macros reads, without what rendering does beside finding them.


def find_dependencies(model: Model) -> None:
    """Sets the model's dependencies, as `full_depends_on` finds them.

    Half of the time that it takes to load a file SQLMesh renders the query for that: it prepares
    macros and moments, copies the tree in search of macros, and names all columns.
    """
    tables = _list_tables(model) if isinstance(model, SqlModel) else None
    if tables is None:
        _ = model.full_depends_on
    else:
        model._full_depends_on = tables


def _list_tables(model: SqlModel) -> set[str] | None:
    """Lists the tables of the query; None if it must be rendered, or if there is no query.

    (`_Model.full_depends_on`, `BaseExpressionRenderer._render`)
    """
    if model.depends_on_ or not model.extract_dependencies_from_query:
        return None
    if "@" in model.query_.sql or model.macro_definitions or not is_pure(model):
        return None
    if not isinstance(model.query, exp.Query):
        return None
    query = model.query.copy()
    try:
        with d.normalize_and_quote(query, model.dialect, model.default_catalog) as normalized:
            pass
        found: set[str] = d.find_tables(
            normalized, default_catalog=model.default_catalog, dialect=model.dialect
        )
    except Exception:
        return None  # rendering says what is wrong with it
    return set(found)
