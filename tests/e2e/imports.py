"""Which modules a process imported, from what `-X importtime` wrote."""

from __future__ import annotations

import re

_LINE = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s*(?P<module>[\w.]+)$", re.MULTILINE)


def imported(stderr: str) -> set[str]:
    """The names of all modules, with their packages."""
    return {found["module"] for found in _LINE.finditer(stderr)}
