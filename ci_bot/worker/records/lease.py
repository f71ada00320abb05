"""A lease that was taken: a thread keeps it alive, a fence lets nothing be written without it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from ci_bot.errors import Incomplete
from ci_bot.worker.process.channel import log
from ci_bot.worker.records.lease_rows import (
    LeaseRows,
)

LeaseReason = Literal["lease_lost", "stop_requested"]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long a lease lives without a sign of life, and how often there is one, in seconds."""

    heartbeat: float = 5.0
    expiry: float = 60.0
    poll: float = 0.5


class LeaseLostError(Incomplete):
    """Another run may have this environment by now, so nothing more may be written to it."""

    reason_code = "lease_lost"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"This run lost its hold on {name}: for too long no sign of life of it reached the "
            "state database, and another run may have taken over.",
            hint="See what became of the other run, if there is one, then ask again.",
        )


class Lease:
    """A lease that was taken. Leave it as a context manager, or `release` it.

    `reason` is None while the work may go on.
    """

    def __init__(
        self,
        rows: LeaseRows | None,
        *,
        name: str,
        token: str,
        fencing: int,
        timing: Timing,
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
        # From before the request: the server's expiry is never earlier than ours.
        self._renewed = renewed
        self._on_end = on_end
        self._ended: LeaseReason | None = None
        self._release = threading.Lock()
        self._done = threading.Event()
        if rows is not None:
            _HELD.append(self)
            threading.Thread(target=self._beat, name=f"lease {name}", daemon=True).start()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def reason(self) -> LeaseReason | None:
        """Why the work has to stop; None while it may go on."""
        if self._rows is None:
            return None
        if self._monotonic() - self._renewed >= self._timing.expiry or self._done.is_set():
            # Not one sign of life reached the server in time: somebody may have taken it.
            return "lease_lost"
        return self._ended

    @contextmanager
    def fence(self, adapter: Any) -> Iterator[None]:
        """A transaction on `adapter` that is the lease's: what is written inside takes effect only
        while it is ours, and nobody can take it in between.

        Args:
            adapter: The engine adapter of the state that is written.

        Raises:
            LeaseLostError: the lease is not ours any more; nothing was written.
        """
        if self._rows is None:
            yield
            return
        with adapter.transaction():
            if self.reason == "lease_lost" or not self._rows.lock(self, adapter):
                self._ended = "lease_lost"
                raise LeaseLostError(self.name)
            yield

    def confirm(self) -> bool:
        """Whether the server says that it is still ours: a machine that slept has a clock that
        slept, too. A server that does not answer now says nothing; `reason` knows how long.
        """
        if self._rows is None:
            return True
        try:
            if not self._rows.is_live(self):
                self._ended = "lease_lost"
        except Exception as error:
            log(f"The lease of {self.name} was not confirmed: {error}")
        return self.reason is None

    def release(self) -> None:
        """Gives it back. What cannot be given back expires; that is said in the log."""
        with self._release:
            if self._done.is_set() or self._rows is None:
                return
            self._done.set()
            _HELD.remove(self)
            try:
                self._rows.delete(self)
            except Exception as error:
                log(
                    f"The lease of {self.name} could not be released, so it expires in "
                    f"{self._timing.expiry:g} s: {error}"
                )

    def _beat(self) -> None:
        """Keeps the lease alive until it is released or lost, and says when the work must stop."""
        rows = self._rows
        pause = self._timing.heartbeat
        while rows is not None and not self._done.wait(pause):
            asked = self._monotonic()
            pause = self._timing.heartbeat
            try:
                stop = (
                    None if self._ended == "lease_lost" else rows.renew(self, self._timing.expiry)
                )
            except Exception as error:
                if self._done.is_set():
                    return
                log(f"The lease of {self.name} was not renewed: {error}")
                # A server that is gone for a moment must not cost the lease.
                pause = min(1.0, pause)
                if self.reason == "lease_lost":
                    self._ended = "lease_lost"
            else:
                if stop is None:
                    self._ended = "lease_lost"
                else:
                    self._renewed = asked
                    if stop:
                        self._ended = "stop_requested"
            if self._ended is not None and not self._done.is_set():
                self._tell(self._ended)

    def _tell(self, reason: LeaseReason) -> None:
        try:
            self._on_end(reason)
        except Exception as error:
            # The heart goes on beating: the work has not ended yet.
            log(f"while stopping: {error}")


_HELD: list[Lease] = []


def release_all() -> None:
    """Releases every lease of this process, for its last seconds (see `stopping`)."""
    for lease in list(_HELD):
        lease.release()
