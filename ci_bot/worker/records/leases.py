"""Who may work on an environment right now: rows beside the ledger that expire by themselves.

An apply and a cleanup of one environment must never overlap, and a run that died must not block the
next one for ever. So each takes a lease: a row that a thread of its own keeps alive, on a
connection of its own. Times are the database server's, because runners' clocks differ.

Physical tables are reclaimed under `RECLAIM`. Applies hold it shared, in effect: `RECLAIM` is
refused while any apply's lease lives, and an apply's while `RECLAIM` lives.

On a DuckDB state there are no rows: the file's lock already admits one process only.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlmesh.core.config import DuckDBConnectionConfig

from ci_bot.contracts.messages import Owner
from ci_bot.errors import BadInput
from ci_bot.worker import compat
from ci_bot.worker.records.lease import Lease, LeaseReason, Timing
from ci_bot.worker.records.lease_rows import (
    RECLAIM,
    TRIED,
    Held,
    HeldByAnother,
    Holder,
    LeaseRows,
)

Say = Callable[[str, str, int | None, int | None], None]

# How often somebody who waits says so in the log.
_TELL_SECONDS = 15.0
# An apply that was asked to stop sees it within a heartbeat; what it is doing then is cancelled on
# Spark, and only a Python model is waited for. Whoever died without a word has expired by then.
CLEANUP_WAITS_SECONDS = 120.0
# A reclaim drops tables one by one; it is seldom longer.
APPLY_WAITS_SECONDS = 30.0
_TIMING = Timing()


class Leases:
    """The leases of one state database.

    Args:
        adapter: SQLMesh's engine adapter on a connection (one for every thread) that nobody else
            uses; None where a file lock is the mutual exclusion.
        monotonic: A clock in seconds.
    """

    def __init__(
        self,
        adapter: Any | None,
        *,
        timing: Timing = _TIMING,
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
    def of(cls, context: Any, **options: Any) -> Leases:
        """The leases beside the state of `context`; nothing is connected yet.

        Raises:
            BadInput: nobody has tried whether they keep two runs apart on such a database.
        """
        connection = compat.state_connection(context.config, context.gateway)
        if isinstance(connection, DuckDBConnectionConfig):
            return cls(None, **options)
        if connection.DIALECT not in TRIED:
            raise BadInput(
                f"The state is on a database of the type `{connection.type_}`, where nobody has "
                "tried yet whether two runs are kept apart. Nothing was touched.",
                hint="An apply or a cleanup needs the state on PostgreSQL, MariaDB, MySQL or "
                "DuckDB.",
                reason_code="state_untried",
            )
        # More than one task makes it one connection per thread: taker, heartbeat, last words.
        return cls(connection.create_engine_adapter(concurrent_tasks=2), **options)

    def acquire(
        self, name: str, holder: Holder, *, on_end: Callable[[LeaseReason], None] = lambda _: None
    ) -> Lease:
        """Takes the lease `name`, if it is free, and keeps it alive until it is released.

        Args:
            on_end: Called in the heartbeat's thread when the work has to stop, and again with
                every beat until the lease is released.

        Raises:
            HeldByAnother: it is not free, or what it must not overlap with is not.
        """
        token, asked = self._token(), self._monotonic()
        fencing = 0
        if self._rows is not None:
            self._rows.prepare()
            fencing = self._rows.acquire(name, token, holder, self.timing.expiry)
        return Lease(
            self._rows,
            name=name,
            token=token,
            fencing=fencing,
            timing=self.timing,
            monotonic=self._monotonic,
            renewed=asked,
            on_end=on_end,
        )

    def exclusive(self, owner: Owner) -> Lease:
        """Takes the project-wide `RECLAIM`, which no apply overlaps; does not wait.

        Raises:
            HeldByAnother: an apply is in flight, or somebody else reclaims (a `Refused` with the
                reason `held`).
        """
        return self.acquire(RECLAIM, Holder.of("reclaim", owner))

    def wait_for(
        self,
        name: str,
        holder: Holder,
        *,
        seconds: float,
        progress: Say,
        stop_applies: bool = False,
        on_end: Callable[[LeaseReason], None] = lambda _: None,
    ) -> Lease:
        """`acquire`, but waits for whoever holds it.

        Args:
            seconds: How long at most.
            stop_applies: Ask an apply that holds it to stop at its next batch.

        Raises:
            HeldByAnother: it was not free in time.
        """
        began = self._monotonic()
        told: tuple[str, float] | None = None
        while True:
            try:
                return self.acquire(name, holder, on_end=on_end)
            except HeldByAnother as error:
                now = self._monotonic()
                if now - began >= seconds:
                    raise
                if told is None or told[0] != error.held.token or now - told[1] >= _TELL_SECONDS:
                    told = (error.held.token, now)
                    progress("lease", f"waiting: {error.message}", None, None)
                if stop_applies and not error.held.stop_requested:
                    self.request_stop(name)
            self._sleep(self.timing.poll)

    def request_stop(self, name: str) -> None:
        """Asks the apply that holds `name`, if one does, to stop at its next batch."""
        if self._rows is not None and self._rows.exists():
            self._rows.request_stop(name)

    def last_number(self) -> int:
        """The fencing number of the newest lease of this state; 0 where there was none."""
        return self._rows.last_number() if self._rows is not None else 0

    def live(self) -> list[Held]:
        """Every lease that has not expired, by name."""
        if self._rows is None or not self._rows.exists():
            return []
        return self._rows.live()

    def close(self) -> None:
        """Closes the connections; leases that are still held expire."""
        if self._rows is not None:
            self._rows.close()


@contextmanager
def for_cleanup(
    context: Any, environment: str, owner: Owner, progress: Say, **options: Any
) -> Iterator[Lease]:
    """The lease of an environment that is removed: an apply that holds it is asked to stop.

    Args:
        options: See `Leases`.

    Raises:
        HeldByAnother: whoever holds it did not end in time.
    """
    leases = Leases.of(context, **options)
    try:
        with leases.wait_for(
            environment,
            Holder.of("cleanup", owner),
            seconds=CLEANUP_WAITS_SECONDS,
            progress=progress,
            stop_applies=True,
        ) as lease:
            yield lease
    finally:
        leases.close()
