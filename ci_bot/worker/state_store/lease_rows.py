"""The table of leases, and its rows.

Every taker first adds one to the same counter row. The lock of that row lets one taker in at a
time, on every database with transactions, so "is it free?" and "it is mine" are one step. The count
is the fencing number, which no later lease gets again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlglot import exp, parse_one
from sqlmesh.utils.migration import blob_text_type, index_text_type

from ci_bot.errors import RequestRefused
from ci_bot.protocol.messages import Owner
from ci_bot.worker.messages import report_times
from ci_bot.worker.state_store.ledger_schema import SCHEMA, make_ledger_schema

if TYPE_CHECKING:
    from sqlmesh.core.engine_adapter import EngineAdapter

LeasedActivity = Literal["apply", "cleanup", "reclaim"]

# No environment can have this name: SQLMesh allows word characters only.
RECLAIM = "*reclaim*"
_COUNTER = "*fencing*"
_NEVER = 2**62
_MS = 1_000

# The server's time in milliseconds. Not CURRENT_TIMESTAMP: on PostgreSQL that is when the
# transaction began, before it waited for the counter.
_NOW = {
    "postgres": "CAST(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000 AS BIGINT)",
    "mysql": "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
}
# The dialects of the databases on which these leases are tested.
TRIED = frozenset(_NOW)


class TakenLease(Protocol):
    """The fields that identify a lease that was taken."""

    name: str
    token: str
    fencing: int


@dataclass(frozen=True, kw_only=True)
class LeaseHolder:
    """The run that takes a lease, in words for the next run that has to wait."""

    activity: LeasedActivity
    who: str

    @classmethod
    def from_request(cls, activity: LeasedActivity, owner: Owner) -> LeaseHolder:
        """Makes the holder from the owner of a request."""
        pull = f"#{owner.pr_number}" if owner.pr_number is not None else ""
        run = f"run {owner.run}" if owner.run else f"process {os.getpid()}"
        return cls(activity=activity, who=f"{owner.name}{pull}, {run}")


@dataclass(frozen=True, kw_only=True)
class HeldLease:
    """A live lease as the database has it. Times are the server's, in milliseconds."""

    name: str
    token: str
    fencing: int
    activity: str
    who: str
    acquired_at: int
    heartbeat_at: int
    expires_at: int
    stop_requested: bool


class HeldByAnother(RequestRefused):
    """The error if another run holds the lease; `held` describes that lease."""

    reason_code = "held"

    def __init__(self, wanted: str, held: HeldLease) -> None:
        who = (
            f"{_choose_article(held.activity)} ({held.who}) since "
            f"{report_times.format_iso_in_message(held.acquired_at)}"
        )
        if held.name == RECLAIM:
            message = (
                f"{wanted} cannot start now: the project's physical tables are reserved by {who}."
            )
        elif wanted == RECLAIM:
            message = f"No physical table is reclaimed now: {held.name} is held by {who}."
        else:
            message = f"{wanted} is held by {who}."
        super().__init__(
            message,
            hint="Nothing was touched. Wait until that run has ended, then ask again. If it is "
            f"dead, its reservation expires at "
            f"{report_times.format_iso_in_message(held.expires_at)}.",
        )
        self.held = held


class LeaseRows:
    """The table of leases."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter
        self._table = exp.table_("_leases", db=SCHEMA)
        dialect = adapter.dialect
        word, number = exp.DataType.build(index_text_type(dialect)), exp.DataType.build("bigint")
        self._columns = {
            "name": word,
            "token": word,
            "fencing": number,
            "activity": word,
            "holder": exp.DataType.build(blob_text_type(dialect)),
            "acquired_at": number,
            "heartbeat_at": number,
            "expires_at": number,
            "stop_requested": number,
        }
        # Every runner has its own clock, so leases need the database's clock, and only for the
        # databases in `TRIED` is there a tested query.
        self._now = parse_one(_NOW[dialect], dialect=dialect)
        self._prepared = False

    def table_exists(self) -> bool:
        return bool(self._adapter.table_exists(self._table))

    def prepare_table(self) -> None:
        """Creates the table and its counter if they do not exist; two runs may do it at once."""
        if self._prepared:
            return
        if not self.table_exists():
            self._create_once(lambda: make_ledger_schema(self._adapter), lambda: True)
            self._create_once(
                lambda: self._adapter.create_state_table(
                    # SQLMesh declares a text here, and passes it to code that takes a tree.
                    self._table,  # type: ignore[arg-type]
                    self._columns,
                    primary_key=("name",),
                ),
                self.table_exists,
            )
        if not self._has_counter():
            zero = exp.Literal.number(0)
            never = exp.Literal.number(_NEVER)
            self._create_once(
                lambda: self._insert_row(
                    _make_text_literal(_COUNTER),
                    _make_text_literal(""),
                    zero,
                    _make_text_literal(""),
                    _make_text_literal(""),
                    zero,
                    zero,
                    never,
                    zero,
                ),
                self._has_counter,
            )
        self._prepared = True

    def _create_once(self, create: Callable[[], Any], there: Callable[[], bool]) -> None:
        try:
            create()
        except Exception:
            # If the table exists now, another process was quicker; else the error is real.
            if not there():
                raise

    def _has_counter(self) -> bool:
        return (
            self._query_one(exp.select("fencing").where(_make_column_condition("name", _COUNTER)))
            is not None
        )

    def acquire_row(self, name: str, token: str, holder: LeaseHolder, expiry: float) -> int:
        with self._adapter.transaction():
            self._adapter.execute(
                exp.update(
                    self._table,
                    {"fencing": exp.column("fencing") + 1},
                    where=_make_column_condition("name", _COUNTER),
                )
            )
            row = self._query_one(
                exp.select("fencing").where(_make_column_condition("name", _COUNTER))
            )
            if row is None:
                raise RuntimeError("the counter of the leases is gone")
            fencing = int(row[0])
            for held in self.list_live():
                if _is_overlapping_lease(name, holder.activity, held):
                    raise HeldByAnother(name, held)
            now = self.read_server_time()
            # An expired lease is lost, so these rows can go.
            gone = exp.or_(_make_column_condition("name", name), exp.column("expires_at") <= now)
            self._adapter.delete_from(self._table, gone)
            self._insert_row(
                _make_text_literal(name),
                _make_text_literal(token),
                exp.Literal.number(fencing),
                _make_text_literal(holder.activity),
                _make_text_literal(holder.who),
                exp.Literal.number(now),
                exp.Literal.number(now),
                exp.Literal.number(now + int(expiry * _MS)),
                exp.Literal.number(0),
            )
        return fencing

    def read_last_fencing_number(self) -> int:
        """Returns the fencing number of the newest lease; 0 if there was none yet."""
        row = (
            self._query_one(exp.select("fencing").where(_make_column_condition("name", _COUNTER)))
            if self.table_exists()
            else None
        )
        return int(row[0]) if row else 0

    def list_live(self) -> list[HeldLease]:
        wanted = exp.and_(
            exp.column("name").neq(_make_text_literal(_COUNTER)),
            exp.column("expires_at") > self.read_server_time(),
        )
        query = exp.select(*self._columns).from_(self._table).where(wanted)
        rows = self._adapter.fetchall(query.order_by("name"), quote_identifiers=True)
        return [
            HeldLease(
                name=str(name),
                token=str(token),
                fencing=int(fencing),
                activity=str(activity),
                who=str(who),
                acquired_at=int(acquired),
                heartbeat_at=int(heartbeat),
                expires_at=int(expires),
                stop_requested=bool(stop),
            )
            for name, token, fencing, activity, who, acquired, heartbeat, expires, stop in rows
        ]

    def renew_row(self, lease: TakenLease, expiry: float) -> bool | None:
        """Renews the lease; returns whether a stop was requested, None if the lease is lost."""
        with self._adapter.transaction():
            now = self.read_server_time()
            alive = exp.and_(_is_own_lease_row(lease), exp.column("expires_at") > now)
            values: dict[str, object] = {"heartbeat_at": now, "expires_at": now + int(expiry * _MS)}
            self._adapter.execute(exp.update(self._table, values, where=alive))
            row = self._query_one(exp.select("stop_requested").where(alive))
        return None if row is None else bool(row[0])

    def is_live(self, lease: TakenLease) -> bool:
        """Whether the lease has not expired, and nobody else has taken it."""
        alive = exp.and_(
            _is_own_lease_row(lease), exp.column("expires_at") > self.read_server_time()
        )
        return self._query_one(exp.select("fencing").where(alive)) is not None

    def lock_row(self, lease: TakenLease, adapter: EngineAdapter) -> bool:
        """Locks the row for the transaction of `adapter`; False if the row is not this lease's."""
        alive = exp.and_(
            _is_own_lease_row(lease), exp.column("expires_at") > self.read_server_time()
        )
        query = exp.select("fencing").from_(self._table).where(alive).lock()
        return adapter.fetchone(query, quote_identifiers=True) is not None

    def request_stop(self, name: str) -> None:
        apply = exp.and_(
            _make_column_condition("name", name),
            _make_column_condition("activity", "apply"),
        )
        self._adapter.execute(
            exp.update(self._table, {"stop_requested": exp.Literal.number(1)}, where=apply)
        )

    def delete_row(self, lease: TakenLease) -> None:
        self._adapter.delete_from(self._table, _is_own_lease_row(lease))

    def read_server_time(self) -> int:
        row = self._adapter.fetchone(exp.select(self._now))
        if row is None:
            raise ValueError("the state's server gave no time")
        return int(row[0])

    def close_connections(self) -> None:
        self._adapter.close()

    def _query_one(self, query: exp.Select) -> Any:
        return self._adapter.fetchone(query.from_(self._table), quote_identifiers=True)

    def _insert_row(self, *values: exp.Expression) -> None:
        self._adapter.execute(
            exp.insert(exp.select(*values), self._table, columns=list(self._columns))
        )


def _is_overlapping_lease(name: str, activity: LeasedActivity, held: HeldLease) -> bool:
    """Whether a live lease prevents taking `name`."""
    if held.name == name:
        return True
    if name == RECLAIM:
        return held.activity == "apply"
    return held.name == RECLAIM and activity == "apply"


def _is_own_lease_row(lease: TakenLease) -> exp.Condition:
    return exp.and_(
        _make_column_condition("name", lease.name),
        _make_column_condition("token", lease.token),
        exp.column("fencing").eq(exp.Literal.number(lease.fencing)),
    )


def _make_column_condition(column: str, value: str) -> exp.EQ:
    return exp.column(column).eq(_make_text_literal(value))


def _make_text_literal(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _choose_article(activity: str) -> str:
    return f"an {activity}" if activity[:1] in "aeiou" else f"a {activity}"
