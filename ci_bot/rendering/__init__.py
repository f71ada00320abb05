"""Documents of the worker and facts of the bot in, Markdown and terminal text out. No I/O.

Everything that came from the pull request passes `redaction` first and then one of the escapes in
`markdown`; templates only ever see values that are escaped when they are printed.
"""

from __future__ import annotations
