"""Logs that would repeat, statement by statement, what a report says anyway."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silence_log(name: str) -> Iterator[None]:
    """Inside of it the log of this name writes nothing."""
    log = logging.getLogger(name)
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was
