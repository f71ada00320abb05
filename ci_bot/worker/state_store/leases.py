"""Leases: rows that say who may work on an environment now, and that expire.

An apply and a cleanup of one environment must never overlap, and a run that died must not block the
next one forever. So each takes a lease: a row that a separate thread renews on its own connection.
Times are the database server's, because runners' clocks differ.

Physical tables are reclaimed under `RECLAIM`. In effect, applies share it: `RECLAIM` is refused
while any apply has a lease, and an apply's lease is refused while `RECLAIM` is held.

A DuckDB state has no such rows: the lock of its file already allows only one process.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from sqlmesh.core.config import DuckDBConnectionConfig

from ci_bot.errors import BadInput, WorkIncomplete
from ci_bot.protocol.messages import Owner
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.runtime import write_worker_log_line
from ci_bot.worker.state_store.lease_rows import (
    RECLAIM,
    TRIED,
    HeldByAnother,
    HeldLease,
    LeaseHolder,
    LeaseRows,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

    from ci_bot.protocol.environment import EnvironmentName

# A lease that was taken: a thread renews it, and a fence stops every write without it.


LeaseReason = Literal["lease_lost", "stop_requested"]


@dataclass(frozen=True, kw_only=True)
class LeaseTiming:
    """The intervals of a lease, in seconds.

    They are how often it is renewed, how long it lives without renewal, and how often a waiting run
    checks.
    """

    heartbeat: float = 5.0
    expiry: float = 60.0
    poll: float = 0.5


class LeaseLostError(WorkIncomplete):
    """The error if the lease is lost: another run may have it, so nothing more may be written."""

    reason_code = "lease_lost"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"This run lost its hold on {name}: for too long no sign of life of it reached the "
            "state database, and another run may have taken over.",
            hint="Check what happened to the other run, if there is one, then ask again.",
        )


class Lease:
    """A lease that was taken. Use it as a context manager, or call `release_lease`.

    `end_reason` is None while the work may go on.
    """

    def __init__(
        self,
        rows: LeaseRows | None,
        *,
        name: str,
        token: str,
        fencing: int,
        timing: LeaseTiming,
        monotonic: Callable[[], float],
        renewed: float,
        on_end: Callable[[LeaseReason], None],
    ) -> None:
        self.name = name
        self.token = token
        self.fencing = fencing
        self._rows = rows
        self._timing = timing
        self._monotonic = monotonic
        # From before the request was sent, so our expiry is never later than the server's.
        self._renewed = renewed
        self._on_end = on_end
        self._ended: LeaseReason | None = None
        self._release = threading.Lock()
        self._done = threading.Event()
        if rows is not None:
            _HELD.append(self)
            threading.Thread(
                target=self._renew_until_end, name=f"lease {name}", daemon=True
            ).start()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release_lease()

    @property
    def end_reason(self) -> LeaseReason | None:
        """Why the work has to stop; None while it may go on."""
        if self._rows is None:
            return None
        if self._monotonic() - self._renewed >= self._timing.expiry or self._done.is_set():
            # No renewal reached the server in time: another run may have taken the lease.
            return "lease_lost"
        return self._ended

    @contextmanager
    def fence_transaction(self, adapter: EngineAdapter) -> Iterator[None]:
        """Opens a transaction on `adapter` whose writes need the lease.

        They take effect only while the lease is ours; nobody can take it in between.

        Args:
            adapter: The engine adapter of the state that is written.

        Raises:
            LeaseLostError: the lease is not ours any more; nothing was written.
        """
        if self._rows is None:
            yield
            return
        with adapter.transaction():
            if self.end_reason == "lease_lost" or not self._rows.lock_row(self, adapter):
                self._ended = "lease_lost"
                raise LeaseLostError(self.name)
            yield

    def confirm_lease(self) -> bool:
        """Whether the server confirms the lease: the clock of a machine that slept is wrong.

        True if the server does not answer; `end_reason` limits for how long.
        """
        if self._rows is None:
            return True
        try:
            if not self._rows.is_live(self):
                self._ended = "lease_lost"
        except Exception as error:
            write_worker_log_line(f"The lease of {self.name} was not confirmed: {error}")
        return self.end_reason is None

    def release_lease(self) -> None:
        """Releases the lease. If that fails, it is logged, and the lease expires."""
        with self._release:
            if self._done.is_set() or self._rows is None:
                return
            self._done.set()
            _HELD.remove(self)
            try:
                self._rows.delete_row(self)
            except Exception as error:
                write_worker_log_line(
                    f"The lease of {self.name} could not be released, so it expires in "
                    f"{self._timing.expiry:g} s: {error}"
                )

    def _renew_until_end(self) -> None:
        """Renews the lease until it is released or lost; calls `on_end` when the work must stop."""
        rows = self._rows
        pause = self._timing.heartbeat
        while rows is not None and not self._done.wait(pause):
            asked_at = self._monotonic()
            pause = self._timing.heartbeat
            try:
                stop = (
                    None
                    if self._ended == "lease_lost"
                    else rows.renew_row(self, self._timing.expiry)
                )
            except Exception as error:
                if self._done.is_set():
                    return
                write_worker_log_line(f"The lease of {self.name} was not renewed: {error}")
                # A short outage of the server must not lose the lease.
                pause = min(1.0, pause)
                if self.end_reason == "lease_lost":
                    self._ended = "lease_lost"
            else:
                if stop is None:
                    self._ended = "lease_lost"
                else:
                    self._renewed = asked_at
                    if stop:
                        self._ended = "stop_requested"
            if self._ended is not None and not self._done.is_set():
                self._announce_end(self._ended)

    def _announce_end(self, reason: LeaseReason) -> None:
        try:
            self._on_end(reason)
        except Exception as error:
            # Renewing goes on: the work has not ended yet.
            write_worker_log_line(f"while stopping: {error}")


_HELD: list[Lease] = []


def release_all_leases() -> None:
    """Releases every lease of this process when it ends (see `runtime.process`)."""
    for lease in list(_HELD):
        lease.release_lease()


Say = Callable[[str, str, int | None, int | None], None]

# Seconds between two log lines of a waiting run.
_TELL_SECONDS = 15.0
# An apply sees a request to stop within a heartbeat. Its Spark jobs are cancelled; only a Python
# model continues. The lease of a dead run has expired by then.
CLEANUP_WAITS_SECONDS = 120.0
# A reclaim drops tables one by one, and seldom takes longer.
APPLY_WAITS_SECONDS = 30.0
_TIMING = LeaseTiming()


class LeaseBook:
    """The leases of one state database.

    Args:
        adapter: SQLMesh's engine adapter with a connection of its own for each thread; None if a
            file lock already excludes other runs.
        monotonic: A clock in seconds.
    """

    def __init__(
        self,
        adapter: EngineAdapter | None,
        *,
        timing: LeaseTiming = _TIMING,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._rows = LeaseRows(adapter) if adapter is not None else None
        self.timing = timing
        self._monotonic = monotonic
        self._sleep = sleep
        self._token = token

    @classmethod
    def from_context(cls, context: Context, **options: Any) -> LeaseBook:
        """Makes the leases for the state of `context`; connects to nothing yet.

        Raises:
            BadInput: the leases are not tested on this kind of database.
        """
        connection = sqlmesh_compat.find_sqlmesh_state_connection(context.config, context.gateway)
        if isinstance(connection, DuckDBConnectionConfig):
            return cls(None, **options)
        if connection.DIALECT not in TRIED:
            raise BadInput(
                f"The state is on a database of the type `{connection.type_}`, and nobody has "
                "tried yet whether two runs are kept apart there. Nothing was touched.",
                hint="An apply or a cleanup needs the state on PostgreSQL, MariaDB, MySQL or "
                "DuckDB.",
                reason_code="state_untried",
            )
        # With more than one task SQLMesh makes a connection for each thread: the taker, the
        # heartbeat, and the last words.
        return cls(connection.create_engine_adapter(concurrent_tasks=2), **options)

    def acquire_lease(
        self,
        name: str,
        holder: LeaseHolder,
        *,
        on_end: Callable[[LeaseReason], None] = lambda _: None,
    ) -> Lease:
        """Takes the lease `name`, if it is free, and keeps it alive until it is released.

        Args:
            on_end: Called in the heartbeat's thread when the work has to stop, and again at every
                beat until the lease is released.

        Raises:
            HeldByAnother: the lease, or one that must not overlap with it, is not free.
        """
        token, asked_at = self._token(), self._monotonic()
        fencing = 0
        if self._rows is not None:
            self._rows.prepare_table()
            fencing = self._rows.acquire_row(name, token, holder, self.timing.expiry)
        return Lease(
            self._rows,
            name=name,
            token=token,
            fencing=fencing,
            timing=self.timing,
            monotonic=self._monotonic,
            renewed=asked_at,
            on_end=on_end,
        )

    def acquire_exclusive(self, owner: Owner) -> Lease:
        """Takes the project-wide `RECLAIM`, which no apply overlaps; does not wait.

        Raises:
            HeldByAnother: an apply is running, or another run reclaims (reason `held`).
        """
        return self.acquire_lease(RECLAIM, LeaseHolder.from_request("reclaim", owner))

    def wait_for(
        self,
        name: str,
        holder: LeaseHolder,
        *,
        seconds: float,
        progress: Say,
        stop_applies: bool = False,
        on_end: Callable[[LeaseReason], None] = lambda _: None,
    ) -> Lease:
        """Takes the lease as `acquire_lease` does, but waits until it is free.

        Args:
            seconds: The longest wait.
            stop_applies: Whether to ask an apply that holds it to stop at its next batch.

        Raises:
            HeldByAnother: it was not free in time.
        """
        began = self._monotonic()
        reported: tuple[str, float] | None = None
        while True:
            try:
                return self.acquire_lease(name, holder, on_end=on_end)
            except HeldByAnother as error:
                now = self._monotonic()
                if now - began >= seconds:
                    raise
                if (
                    reported is None
                    or reported[0] != error.held.token
                    or now - reported[1] >= _TELL_SECONDS
                ):
                    reported = (error.held.token, now)
                    progress("lease", f"waiting: {error.message}", None, None)
                if stop_applies and not error.held.stop_requested:
                    self.request_stop(name)
            self._sleep(self.timing.poll)

    def request_stop(self, name: str) -> None:
        """Asks the apply that holds `name`, if one does, to stop at its next batch."""
        if self._rows is not None and self._rows.table_exists():
            self._rows.request_stop(name)

    def read_last_fencing_number(self) -> int:
        """Returns the fencing number of the newest lease of this state; 0 if there was none."""
        return self._rows.read_last_fencing_number() if self._rows is not None else 0

    def list_live(self) -> list[HeldLease]:
        """Lists every lease that has not expired, by name."""
        if self._rows is None or not self._rows.table_exists():
            return []
        return self._rows.list_live()

    def close_connections(self) -> None:
        """Closes the connections; leases that are still held expire."""
        if self._rows is not None:
            self._rows.close_connections()


@contextmanager
def hold_cleanup_lease(
    context: Context, environment: EnvironmentName, owner: Owner, progress: Say, **options: Any
) -> Iterator[Lease]:
    """Holds the lease of an environment that is being removed; asks a running apply to stop.

    Args:
        options: See `LeaseBook`.

    Raises:
        HeldByAnother: the holder did not end in time.
    """
    leases = LeaseBook.from_context(context, **options)
    try:
        with leases.wait_for(
            environment,
            LeaseHolder.from_request("cleanup", owner),
            seconds=CLEANUP_WAITS_SECONDS,
            progress=progress,
            stop_applies=True,
        ) as lease:
            yield lease
    finally:
        leases.close_connections()
