"""What the bot does without GitHub: a review, an apply, a cleanup, a sweep, from request to report.

The command line and `ci-bot run` both come through here, so that a laptop and a workflow get the
same reports.
"""

from __future__ import annotations
