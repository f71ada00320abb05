"""What a secret is, and how it is kept out of every text that leaves the bot.

Three nets. The first is exact: each secret that the bot knows (`environment`: the values that the
worker gets; `parts`: what stands inside them), in the encodings in which tools print it (`forms`,
`known`). The second is the one table of what credentials look like (`shapes`), the third are names
in front of values (`pairs`). What a hostile program does to hide a secret on purpose (reversing
it, one letter a line) no net can catch; SECURITY.md says so.

Everything here is pure, and both processes use it. Redact before a text is cut: half a secret
looks like no secret.
"""

from __future__ import annotations

from ci_bot.redaction.secret_parts import secret_values
from ci_bot.redaction.known_values import encodings
from ci_bot.redaction.redactor import (MASK, Redactor, StreamRedactor, hide)

__all__ = ["MASK", "Redactor", "StreamRedactor", "encodings", "hide", "secret_values"]
