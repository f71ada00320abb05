"""Plan reviews, PR environments and proven cleanup for SQLMesh projects on Spark."""

from __future__ import annotations

__version__ = "0.2.0"
