"""The worker's user in the container, and what the modes of files allow it."""

from __future__ import annotations

import os
from dataclasses import dataclass

READ, WRITE, ENTER = 0o4, 0o2, 0o1


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The user and group that the worker runs as, in the container."""

    uid: int
    gid: int


def may(status: os.stat_result, identity: Identity, right: int) -> bool:
    """Whether `identity` has `right` on a file, by its mode bits; an owner can take any right."""
    if status.st_uid == identity.uid:
        return True
    shift = 3 if status.st_gid == identity.gid else 0
    return bool(status.st_mode >> shift & right)
