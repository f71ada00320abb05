"""GitHub, in verbs of ours: the port, its adapter over PyGithub, and the sticky comment.

`port` says what the rest of the bot may ask for; tests and fakes implement it. `client` is its one
implementation, on `transport`, the only module that touches PyGithub. Everything that can be
decided without asking GitHub is pure: `retry`, `failures`, `answers`, `sticky_rules`.
"""

from __future__ import annotations
