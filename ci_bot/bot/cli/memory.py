"""Memory of large texts goes back to the system when they are gone.

A report of thousands of models is some large texts, one after the other. The GNU C library gives a
large block back at once, as long as it counts as large; but the first one that is freed raises that
bound to its own size (`M_MMAP_THRESHOLD` in mallopt(3)), and from then on the next ones lie among
what stays, if nothing can be given back. For 5,000 models that is 6 MB of 85.
"""

from __future__ import annotations

import ctypes

# malloc.h, and its own first value. A bound that somebody sets does not move any more.
M_MMAP_THRESHOLD = -3
LARGE = 128 * 1024


def keep_large_apart() -> bool:
    """Fixes what counts as large; False if the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_THRESHOLD, LARGE))
