"""Everything that runs the pull request's code: the only user of SQLMesh and PySpark.

Nothing here imports the bot or speaks with GitHub, and nothing outside imports this package: the
bot starts it as a process of its own.
"""

from __future__ import annotations
