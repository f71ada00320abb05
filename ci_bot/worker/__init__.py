"""Everything that runs the pull request's code: the only user of SQLMesh and PySpark.

Nothing here imports the bot or calls GitHub. Nothing outside imports this package: the bot starts
it as a separate process.
"""

from __future__ import annotations
