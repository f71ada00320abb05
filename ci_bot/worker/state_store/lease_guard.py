"""The lease that an apply holds on its environment while it builds, and reasons to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlmesh.core import constants as c
from sqlmesh.utils.errors import CircuitBreakerError

from ci_bot.errors import EXIT_INTERRUPTED
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import Owner
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.runtime import cancel_spark_jobs_of_worker
from ci_bot.worker.state_store.lease_rows import RECLAIM, HeldByAnother, LeaseHolder
from ci_bot.worker.state_store.leases import (
    APPLY_WAITS_SECONDS,
    Lease,
    LeaseBook,
    LeaseLostError,
    LeaseReason,
    Say,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

    from ci_bot.protocol.environment import EnvironmentName

Seen = tuple[int, list[Any]]


class LeaseHold:
    """The lease of one apply; always call `end_lease`.

    Args:
        stopped: Whether the run was asked to stop.
    """

    def __init__(
        self,
        context: Context,
        environment: EnvironmentName,
        owner: Owner,
        *,
        stopped: Callable[[], bool],
    ) -> None:
        self._context = context
        self._environment = environment
        self._owner = owner
        self._stopped = stopped
        self._leases = LeaseBook.from_context(context)
        self._lease: Lease | None = None

    def read_state_facts(self) -> Seen:
        """Reads the facts of the state that a plan depends on: for `has_moved_since`."""
        stored = map(self._context.state_reader.get_environment, (c.PROD, self._environment))
        return self._leases.read_last_fencing_number(), [
            item and (item.plan_id, item.finalized_ts, item.expiration_ts) for item in stored
        ]

    def take_lease(self, progress: Say) -> None:
        """Takes the lease at once, or waits for a reclaim to end.

        Raises:
            HeldByAnother: another run holds the environment.
        """
        holder = LeaseHolder.from_request("apply", self._owner)

        def on_end(_reason: LeaseReason) -> None:
            # Cancel the running Spark jobs: nobody needs their result, and the run would wait for
            # them.
            cancel_spark_jobs_of_worker()

        try:
            self._lease = self._leases.acquire_lease(self._environment, holder, on_end=on_end)
        except HeldByAnother as error:
            if error.held.name != RECLAIM:
                raise
            self._lease = self._leases.wait_for(
                self._environment,
                holder,
                seconds=APPLY_WAITS_SECONDS,
                progress=progress,
                on_end=on_end,
            )

    def has_moved_since(self, seen: Seen) -> bool:
        """Whether the state has changed since `seen`, so that the apply has to plan again.

        Another run with a lease may have removed or reclaimed tables that a plan builds on; or
        somebody promoted without a lease, from a terminal.
        """
        number, environments = seen
        return self.fencing_token - number > 1 or self.read_state_facts()[1] != environments

    @property
    def fencing_token(self) -> int:
        return self._lease.fencing if self._lease else 0

    @property
    def end_reason(self) -> LeaseReason | None:
        """Why the lease requires the work to end; None while it does not."""
        return self._lease.end_reason if self._lease else None

    def should_stop(self) -> bool:
        """Whether the work has to end: the run was stopped, or its lease ended."""
        return self._stopped() or self.end_reason is not None

    def confirm_must_stop(self) -> bool:
        """Whether the work has to end; asks the server, too, whether the lease is still ours."""
        return self.should_stop() or (self._lease is not None and not self._lease.confirm_lease())

    def check_lease(self) -> None:
        """Checks the lease before a write on Spark, which no transaction can protect.

        Raises:
            CircuitBreakerError: the work has to end.
        """
        if self.confirm_must_stop():
            raise CircuitBreakerError

    @contextmanager
    def fence_write(self) -> Iterator[None]:
        """Wraps a write to the state that must not happen without the lease.

        Raises:
            LeaseLostError: this run has no lease any more.
        """
        if self._lease is None:
            raise LeaseLostError(self._environment)
        with self._lease.fence_transaction(sqlmesh_compat.get_sqlmesh_state_adapter(self._context)):
            yield

    @contextmanager
    def fence_promotion(self) -> Iterator[None]:
        """Wraps the promotion, which needs the lease.

        Raises:
            CircuitBreakerError: the work has to end.
            LeaseLostError: this run has no lease any more.
        """
        if self.should_stop():
            raise CircuitBreakerError
        with self.fence_write():
            yield

    def make_failure(self) -> Failure:
        """Makes the failure of stopped work, for the person who asked for it."""
        if self._stopped():
            return Failure(
                stage="apply",
                reason_code="cancelled",
                exit_code=EXIT_INTERRUPTED,
                message="The apply was cancelled.",
                hint="Apply again to complete the environment, or clean it up.",
            )
        if self.end_reason == "stop_requested":
            return Failure(
                stage="apply",
                reason_code="stop_requested",
                exit_code=EXIT_INTERRUPTED,
                message=f"The apply was stopped, because {self._environment} is being removed.",
                hint="If the pull request is open again, apply again after the cleanup.",
            )
        lost = LeaseLostError(self._environment)
        return Failure(
            stage="apply",
            reason_code=lost.reason_code,
            exit_code=lost.exit_code,
            message=lost.message,
            hint=lost.hint,
        )

    def end_lease(self) -> None:
        """Releases the lease, if it was taken."""
        if self._lease is not None:
            self._lease.release_lease()
        self._leases.close_connections()
