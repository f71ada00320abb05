"""The tables of the ledger, their version, and the upgrade of an older version.

A review only reads, so every reader accepts the tables of an older version; the first writer
upgrades them. The upgrade changes no older row, because another branch may still run the older
version on the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.utils.migration import blob_text_type, index_text_type

import ci_bot
from ci_bot.errors import BadInput
from ci_bot.worker.messages import report_times

if TYPE_CHECKING:
    from sqlmesh.core.engine_adapter import EngineAdapter

SCHEMA = "sqlmesh_ci_bot"

# Older rows are about a different warehouse and different data.
KEEP_DAYS = 180

# 1: environments, runs, acceptances, without a version. 2: adds the version, applies with their
# estimates, and the cost of prod's own runs.
LEDGER_VERSION = 2


@dataclass(frozen=True)
class LedgerTable:
    """A table of the ledger: its name and columns, which are text unless listed in `numbers`."""

    name: str
    columns: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None

    @property
    def table_expression(self) -> exp.Table:
        return exp.table_(self.name, db=SCHEMA)

    def types_on(self, dialect: str) -> dict[str, exp.DataType]:
        """Returns the columns with their types on a database.

        MySQL needs a length for text in a key. Its TEXT ends at 64 KiB, and the document of a large
        environment is longer.
        """
        bounded, endless = index_text_type(dialect), blob_text_type(dialect)
        return {
            name: exp.DataType.build(
                "int" if name in self.numbers else bounded if name in (self.key or ()) else endless,
                dialect=dialect,
            )
            for name in self.columns
        }


def _make_ledger_document_table(
    name: str, *columns: str, key: tuple[str, ...] | None = None
) -> LedgerTable:
    return LedgerTable(name, (*columns, "document"), key=key)


ENVIRONMENTS = _make_ledger_document_table("_environments", "name", "owner", "phase", key=("name",))
RUNS = _make_ledger_document_table("_runs", "model", "at")
ACCEPTANCES = _make_ledger_document_table("_acceptances", "about", "item", "at")
RESTATEMENTS = _make_ledger_document_table("_restatements", "about", "item", "at")
APPLIES = _make_ledger_document_table("_applies", "environment", "at")
PROD_RUNS = _make_ledger_document_table("_prod_runs", "source", "table_name", "at")
VERSIONS = LedgerTable("_ledger_versions", ("version", "written_by", "at"), numbers=("version",))
TABLES = (ENVIRONMENTS, RUNS, ACCEPTANCES, RESTATEMENTS, APPLIES, PROD_RUNS, VERSIONS)


# ER_DBACCESS_DENIED_ERROR and ER_TABLEACCESS_DENIED_ERROR; ER_BAD_DB_ERROR and ER_NO_SUCH_TABLE.
_MYSQL_ACCESS_DENIED = (1044, 1142)
_MYSQL_NO_TABLE = (1049, 1146)


class LedgerTables:
    """The ledger's tables in one state database.

    Args:
        adapter: SQLMesh's engine adapter of the state.
    """

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter
        self._checked = False
        self._there: set[str] = set()

    def table_exists(self, table: LedgerTable) -> bool:
        """Whether the table exists.

        Raises:
            BadInput: a newer version of ci-bot has written this ledger.
        """
        self._check_version()
        # An existing table stays; a missing one may be made by another run at any moment.
        if table.name not in self._there and self._adapter.table_exists(table.table_expression):
            self._there.add(table.name)
        return table.name in self._there

    def list_hidden_tables(self) -> list[str]:
        """Lists the tables that this account may not read.

        `table_exists` reads `information_schema`, where an account sees only what it has a right
        to. PostgreSQL lists all tables in `pg_class`. MySQL refuses to read a table, whether it
        exists or not; so there a missing right is found even before the table exists.
        """
        if self._adapter.dialect == "mysql":
            return [table.name for table in TABLES if self._is_refused(table)]
        if self._adapter.dialect != "postgres":
            return []
        relation, schema = exp.column("relname", table="r"), exp.column("nspname", table="s")
        readable = exp.func("has_table_privilege", exp.column("oid", table="r"), "'SELECT'")
        found = self._adapter.fetchall(
            exp.select(relation)
            .from_(exp.table_("pg_class", db="pg_catalog", alias="r"))
            .join(
                exp.table_("pg_namespace", db="pg_catalog", alias="s"),
                on=exp.column("relnamespace", table="r").eq(exp.column("oid", table="s")),
            )
            .where(
                schema.eq(exp.Literal.string(SCHEMA)),
                relation.isin(*(table.name for table in TABLES)),
                exp.not_(readable),
            )
            .order_by(relation)
        )
        return [str(row[0]) for row in found]

    def _is_refused(self, table: LedgerTable) -> bool:
        """Whether MySQL forbids this account to read a table."""
        try:
            self._adapter.fetchone(exp.select("1").from_(table.table_expression).limit(0))
        except Exception as error:  # the driver is the team's own, so its types are not known here
            code = error.args[0] if error.args else None
            if code in _MYSQL_ACCESS_DENIED:
                return True
            if code in _MYSQL_NO_TABLE:
                return False
            raise
        return False

    def prepare_tables(self) -> None:
        """Makes the missing tables, and records this version of the ledger.

        Raises:
            BadInput: a newer version of ci-bot has written this ledger.
        """
        missing = [table for table in TABLES if not self.table_exists(table)]
        if missing:
            make_ledger_schema(self._adapter)
        for table in missing:
            self._adapter.create_state_table(
                # SQLMesh declares a text here, and passes it to `create_table`, which takes a tree.
                table.table_expression,  # type: ignore[arg-type]
                table.types_on(self._adapter.dialect),
                primary_key=table.key,
            )
        if self._find_newest_version()[0] < LEDGER_VERSION:
            self._write_version()

    def _check_version(self) -> None:
        if self._checked:
            return
        if self._adapter.table_exists(VERSIONS.table_expression):
            version, written_by = self._find_newest_version()
            if version > LEDGER_VERSION:
                raise _make_newer_ledger_error(version, written_by)
        self._checked = True

    def _find_newest_version(self) -> tuple[int, str]:
        found = self._adapter.fetchone(
            exp.select("version", "written_by")
            .from_(VERSIONS.table_expression)
            .order_by(exp.column("version").desc())
            .limit(1)
        )
        return (int(found[0]), str(found[1])) if found else (1, "")

    def _write_version(self) -> None:
        import pandas as pd

        # Two runs may write this at once: two rows with one version mean the same as one.
        self._adapter.insert_append(
            VERSIONS.table_expression,
            pd.DataFrame(
                [
                    {
                        "version": LEDGER_VERSION,
                        "written_by": ci_bot.__version__,
                        "at": report_times.format_iso_in_message(
                            report_times.read_milliseconds_now()
                        ),
                    }
                ]
            ),
            target_columns_to_types=VERSIONS.types_on(self._adapter.dialect),
            track_rows_processed=False,
        )


def make_ledger_schema(adapter: EngineAdapter) -> None:
    """Makes the schema if it does not exist.

    It checks first, because an account may lack the right to create a schema if its administrator
    made it.
    """
    there = (
        exp.select("schema_name")
        .from_(exp.table_("schemata", db="information_schema"))
        .where(exp.column("schema_name").eq(exp.Literal.string(SCHEMA)))
    )
    if adapter.fetchone(there) is None:
        adapter.create_schema(SCHEMA)


def _make_newer_ledger_error(version: int, written_by: str) -> BadInput:
    return BadInput(
        f"The ledger in the schema `{SCHEMA}` of the state database has version {version}, written "
        f"by ci-bot {written_by or 'without a version'}; this is ci-bot {ci_bot.__version__}, "
        f"which knows versions up to {LEDGER_VERSION}.",
        hint=f"Use ci-bot {written_by or 'in its newest version'} or later in this workflow, too.",
        reason_code="ledger_too_new",
    )
