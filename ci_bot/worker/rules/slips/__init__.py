"""Rules on slips: values that run without an error and are hardly ever the wanted ones.

A module must be imported here to take part. `improbable_expressions` and `misnamed_columns` are the
rules; each of the other modules finds the slips of one kind for them.
"""

from __future__ import annotations

from ci_bot.worker.rules.slips import improbable_expressions, misnamed_columns
