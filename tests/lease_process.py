"""A run of ours as far as leases go, in a process of its own: takes, holds, tells, gives back.

Arguments: the state's database as a URL, the environment, the activity, and what to do:
`rounds N` waits for the lease N times, and each time asks the database who else is inside;
`hold` takes it once and holds it until the process ends.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from sqlmesh.core.config.connection import PostgresConnectionConfig

from ci_bot.worker.runtime.process import WorkerStopRequest
from ci_bot.worker.state_store.lease_rows import LeasedActivity, LeaseHolder
from ci_bot.worker.state_store.leases import LeaseBook, LeaseTiming

FAST = LeaseTiming(heartbeat=0.1, expiry=2.0, poll=0.01)
# For what must not expire on a machine that is busy.
PATIENT = LeaseTiming(heartbeat=1.0, expiry=60.0, poll=0.01)


def connection(url: str) -> PostgresConnectionConfig:
    """SQLMesh's configuration of a state in that database."""
    parts = urlsplit(url)
    return PostgresConnectionConfig(
        host=str(parts.hostname),
        port=int(parts.port or 5432),
        user=str(parts.username),
        password=str(parts.password),
        database=parts.path.strip("/"),
    )


def leases(url: str, timing: LeaseTiming = FAST) -> LeaseBook:
    """The leases of that database, with connections of their own."""
    return LeaseBook(connection(url).create_engine_adapter(concurrent_tasks=2), timing=timing)


def _rounds(
    known: LeaseBook, holder: LeaseHolder, environment: str, count: int, adapter: Any
) -> None:
    for _ in range(count):
        with known.wait_for(
            environment, holder, seconds=60, progress=lambda *_: None, stop_applies=False
        ) as lease:
            adapter.execute("UPDATE inside SET holders = holders + 1")
            inside = adapter.fetchone("SELECT holders FROM inside")[0]
            adapter.execute("UPDATE inside SET holders = holders - 1")
        print(lease.fencing, inside, flush=True)


def main() -> None:
    url, environment, activity, what, *rest = sys.argv[1:]
    known = leases(url, PATIENT if what == "rounds" else FAST)
    kind: LeasedActivity = "apply" if activity == "apply" else "cleanup"
    holder = LeaseHolder(activity=kind, who=f"octo/shop#7, run {activity}")
    stop = WorkerStopRequest(monotonic=time.monotonic, exit_now=os._exit)
    stop.install_and_watch()
    print("ready", flush=True)
    sys.stdin.readline()
    if what == "rounds":
        adapter = connection(url).create_engine_adapter()
        _rounds(known, holder, environment, int(rest[0]), adapter)
        return
    lease = known.acquire_lease(environment, holder)
    print(lease.fencing, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
