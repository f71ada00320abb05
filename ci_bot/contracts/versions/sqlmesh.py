"""Which versions of SQLMesh this release can work with, for both processes."""

from __future__ import annotations

import re
from itertools import takewhile

Version = tuple[int, ...]
OLDEST: Version = (0, 227, 1)
# The first one that nothing was tried with.
BEYOND: Version = (0, 237)
IN_WORDS = "0.227.1 to 0.236.x"
WAY_OUT = (
    f"Pin one of {IN_WORDS} in the input `requirements`: the one that prod is built with, if it "
    "is among them. Of an older one, upgrade prod first, which ends with `sqlmesh migrate`. For a "
    "newer one, take a newer release of this action."
)

_REQUIREMENT = re.compile(r"(?i)sqlmesh(?![\w.-])\s*(?:\[[^\]]*\])?\s*\(?(?P<bounds>[^;#)]*)")
_PARTS = 3
_BOUND = re.compile(r"(===|==|~=|<=|>=|<|>)\s*([0-9][0-9A-Za-z.*+!-]*)")


def numbers(version: str) -> Version:
    """The leading numbers of a version: those of a release candidate are the release's."""
    parts = [re.match(r"\d+", part) for part in version.strip().split(".")]
    return tuple(int(part[0]) for part in takewhile(lambda part: part is not None, parts) if part)


def is_supported(version: str) -> bool:
    """Whether this release works with that version."""
    return OLDEST <= numbers(version) < BEYOND


def excluded_by(requirement: str) -> str | None:
    """What one line of a requirements file asks for, if it leaves no version that is supported.

    Said of numbers only: a line that allows a version that does not exist counts as allowing it.
    """
    line = re.split(r"\s--", requirement, maxsplit=1)[0]
    asked = _REQUIREMENT.match(line)
    if asked is None or line[asked.end("bounds") :].startswith("@"):
        return None
    bounds = asked["bounds"].strip()
    low, high = OLDEST, BEYOND  # of what is left; `high` is not in it
    for sign, text in _BOUND.findall(bounds):
        version, series = numbers(text), text.endswith(".*")
        if sign in ("==", "===", "~=", ">=", ">"):
            low = max(low, version)
        if sign in ("==", "===") and not series:
            # 0.228 is another way to write 0.228.0.
            high = min(high, (*version, *(0,) * (_PARTS - len(version)), 0))
        elif sign == "~=" or series:
            kept = version[:-1] if sign == "~=" else version
            high = min(high, (*kept[:-1], kept[-1] + 1)) if kept else high
        elif sign == "<":
            high = min(high, version)
        elif sign == "<=":
            high = min(high, (*version, 0))
    return None if low < high else f"sqlmesh{bounds}"


def outside(what: str) -> str:
    """Why a version is refused, as a sentence. Args: what asks for it, or has it."""
    return f"{what}, and this release works with SQLMesh {IN_WORDS}."
