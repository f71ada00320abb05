"""The data that crosses between the bot and the worker and lands in files.

Everything here is frozen, versioned and closed (unknown keys are refused). The worker runs the pull
request's code, so its answers are trusted only as far as these types check them. The JSON Schema of
each file is generated from the model that reads it, so the two cannot differ.
"""

from __future__ import annotations
