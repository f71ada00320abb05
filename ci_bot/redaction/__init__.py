"""Secrets out of every text that leaves the bot: comments, summaries, titles, files and logs.

Two nets. The first is exact: each secret that the bot knows, in the encodings in which tools print
it (`forms`). The second is a list of shapes (`shapes`): tokens of well-known services, passwords in
connection URLs, `password=...` pairs, private keys. What a hostile program does to hide a secret on
purpose (reversing it, one letter a line) no net can catch; DESIGN 2 says so.

Everything here is pure. Redact before a text is cut: half a secret looks like no secret.
"""

from __future__ import annotations

from ci_bot.redaction.forms import encodings, secret_values
from ci_bot.redaction.redactor import MASK, Redactor, StreamRedactor

__all__ = ["MASK", "Redactor", "StreamRedactor", "encodings", "secret_values"]
