"""Documents of the worker and facts of the bot in, Markdown out. No I/O but its templates.

Everything that comes here has lost its secrets before (`ci_bot.secrets`), and passes one of the
escapes in `markdown`; templates only ever see values that are escaped when they are printed.
"""

from __future__ import annotations
