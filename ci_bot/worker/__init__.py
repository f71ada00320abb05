"""The only rooms that import SQLMesh and PySpark. They run the pull request's code.

Nothing here may import the GitHub client, and nothing outside may import this package: the bot
starts it as a process of its own.
"""

from __future__ import annotations
