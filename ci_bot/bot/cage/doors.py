"""Ways out of the cage that would stand open because of the machine, not because of us.

A worker under a user of its own cannot write to the runner's command files or to the Docker socket,
unless their modes allow everybody, or the worker's uid happens to be the runner's. Then the cage
holds nothing, so this is looked at before every start in the container. What stands in a directory
that the worker may not enter is out of its reach, whatever its own mode says.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ci_bot.bot.cage.user import ENTER, WRITE, Identity, may
from ci_bot.errors import BadInput

DOCKER_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/docker.sock"))


def open_doors(paths: Iterable[Path], identity: Identity) -> list[Path]:
    """Those of `paths`, and of the directories that hold them, that the worker could write to."""
    found: dict[Path, None] = {}
    for path in paths:
        for place in (path, path.parent):
            if place.exists() and _is_open(place, identity):
                found[place] = None
    return list(found)


def require_closed(paths: Iterable[Path], identity: Identity) -> None:
    """Raise BadInput if the worker could reach one of `paths`."""
    doors = open_doors(paths, identity)
    if doors:
        raise BadInput(
            f"The worker's user {identity.uid} could write to {', '.join(map(str, doors))}, and so "
            "could the pull request's code.",
            hint="Take the write permission for everybody away on the runner, or run the worker "
            "under another uid.",
            reason_code="open_door",
        )


def _is_open(place: Path, identity: Identity) -> bool:
    # The path as it resolves: a link may lead past the locked directory that it stands in.
    real = place.resolve()
    reached = all(may(above.stat(), identity, ENTER) for above in real.parents)
    return reached and may(real.stat(), identity, WRITE) and not _is_sticky(real)


def _is_sticky(place: Path) -> bool:
    """In /tmp and its like everybody may create files, but not touch those of others."""
    return place.is_dir() and bool(place.stat().st_mode & 0o1000)
