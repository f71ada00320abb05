"""Queries that wait in their files: of most models nobody asks for more than the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlmesh.core.dialect import parse
from sqlmesh.core.model.common import ParsableSql


class QueryInFile(ParsableSql):
    """A query whose tree is made again, with its comments and places, where somebody asks for it.

    The process that loaded the model had the tree; on its way to another process a tree is four
    fifths of a model.
    """

    _path: Path = Path()
    _file_dialect: str = ""
    _lists_columns: bool = False

    @property
    def lists_columns(self) -> bool:
        """What `plain_models.lists_columns` says of the tree."""
        return self._lists_columns

    def parse(self, dialect: str) -> Any:
        if self._parsed is None and self._parsed_dialect == dialect:
            self._parsed = self._from_file()
        return super().parse(dialect)

    def _from_file(self) -> Any:
        """None where the file holds something else by now: then the text that was loaded counts."""
        try:
            text = self._path.read_text(encoding="utf-8")
            found = parse(text, default_dialect=self._file_dialect)
        except Exception:
            return None
        return next((query for query in found if _is_query(query, self.sql)), None)


def leave_in_file(model: Any, *, file_dialect: str, lists_columns: bool) -> None:
    """Takes the tree out of a SQL model that is the only one of its file.

    Args:
        file_dialect: The project's, for files that name none. (`load_sql_models`)
        lists_columns: see `plain_models.lists_columns`.
    """
    whole = model.query_
    if _is_query(whole._parsed, whole.sql):
        left = left_in_file(model, file_dialect=file_dialect, lists_columns=lists_columns)
        left._parsed_dialect = whole._parsed_dialect
        vars(model)["query_"] = left  # models are frozen


def left_in_file(model: Any, *, file_dialect: str, lists_columns: bool) -> QueryInFile:
    """The query of a SQL model without its tree; the arguments are those of `leave_in_file`."""
    whole = model.query_
    left = QueryInFile(sql=whole.sql, transaction=whole.transaction)
    left._path, left._file_dialect = Path(model._path), file_dialect
    left._lists_columns, left._parsed_dialect = lists_columns, model.dialect
    return left


def _is_query(found: Any, sql: str) -> bool:
    return isinstance(found, exp.Query) and found.meta.get("sql") == sql
