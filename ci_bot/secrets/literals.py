"""Whether a piece of text could be a credential at all, or only stands where one would."""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from itertools import pairwise

SHORTEST = 4
_STRONG = 8
_DIGITS = 6
_RANDOM = 10
_RANDOM_WITHOUT_DIGITS = 20
_BETWEEN_WORDS = frozenset("-_./:,=@ ")

# Where the value comes from instead of what it is.
REFERENCE = re.compile(
    r"""
      \{\{ | \}\} | \{% | \$\{ | \$\( | %\(\w+\)s
    | ^\$[\w:]+$ | ^@\{ | ^@\w+[({]? | ^:\w+$ | ^\?$ | ^%s$ | ^\{[\w.]*\}$ | ^<[A-Za-z]
    | ^\*\w | ^!\w | ^ENC\[
    | ^(?:arn|vault|ssm|sm|op|env|file|gcpsm|aws|awssm|keyring|secretsmanager|secret|azurekv):
    | ^[A-Za-z][A-Za-z0-9+.\-]*://
    | ^(?:os|env|self|cls|config|settings|vars?|local|data|module)\.\w
    | ^secrets?\.\w | ^env_var\b | ^getenv\b | ^\w+(?:\.\w+)*\(
    """,
    re.VERBOSE,
)
_PLACE = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\|[\w\-]+(?:/[\w.\-]+)+$")
_TYPE = re.compile(
    r"(?i)(?:n?varchar|text|string|str|char|character|binary|varbinary|bytes?|blob|clob|int|integer|"
    r"bigint|smallint|tinyint|number|float|real|double|decimal|numeric|bool|boolean|date|datetime|"
    r"time|timestamp\w*|interval|uuid|jsonb?|variant|object|any|optional|struct|array|map|super)"
    r"(?:\s*[(<\[].*)?"
)
# A version with what is said of one, a date or a time, a number with a unit of time or size. Any
# other word behind the number would make a password of it.
_MEASURE = re.compile(
    r"""(?ix)
      [\^~<>=v]{0,2}\d+(?:\.\d+)+
      (?:(?:[-+]\d{1,8}
          |[-+.](?:a|b|c|m|rc|ga|alpha|beta|dev|post|pre|preview|next|canary|nightly|final|release
                  |snapshot|build|amzn|slim|alpine|bookworm)\d{0,4})
         (?:\.\d{1,8})*)*
    | \d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\ ?Z|\ ?[-+]\d\d:?\d\d)?)?
    | \d+(?:[.,]\d+)?\s?(?:%|[kmgt]i?b?|b|[num]?s|secs?|mins?|h|hrs?|d|days?|w|mo|y|yrs?|x|px)
    """
)
_PLACEHOLDER = re.compile(
    r"""(?ix)
      x+ | \*+ | \.+ | -+ | _+ | \#+ | \[.*\] | \{.*\} | none | null | nil | true | false | yes | no
    | on | off | todo | tbd | n/?a | redacted | masked | hidden | removed | empty | unset | default
    | auto | prompt | ask | never | required | optional | disabled | enabled | inherit | passed
    | failed | change[-_ ]?(?:me|this|it)?\w* | replace[-_ ]?\w* | insert[-_ ]\w* | fill[-_ ]\w*
    | placeholder\w*
    | your\w* | (?:your|my|the|some|a|an|our|any)[-_ ][\w \-]*
    | (?:test|fake|dummy|sample|example|mock)[-_ ]?\w* | [\w\-]*[-_](?:here|example|placeholder)
    | (?:my|user|db|app|admin|client|api|access|secret|private|auth|account|aws|s3|xxx)?[-_ ]?
      (?:my|account|access|api|secret)?[-_ ]?
      (?:pass|password|passwort|kennwort|passwd|pwd|pw|secret|token|key|credentials?)
      (?:[-_ ]?(?:key|id|value|token|secret))?
    | foo | bar | baz | foobar | blah | abc | abcd | abcdef | 1?234(?:5(?:6(?:7(?:8(?:90?)?)?)?)?)?
    """
)


class Likeness(IntEnum):
    """How much a text looks like a credential."""

    NO = 0
    WORD = 1
    YES = 2


def likeness(text: str, *, made_by_people: bool, may_be_path: bool = True) -> Likeness:
    """How much `text`, a literal, looks like a credential.

    Args:
        made_by_people: A password: words with a digit are enough, and plain words are `WORD`.
            Otherwise a token or key, which machines make, so it has to look random.
        may_be_path: Whether a text with slashes names a file; behind `user:` in an address it does
            not.
    """
    text = text.strip()
    if len(text) < SHORTEST or not text.isprintable() or stands_for_one(text):
        return Likeness.NO
    if is_random(text):
        return Likeness.YES
    if not made_by_people or any(char.isspace() for char in text):
        return Likeness.NO
    if may_be_path and _PLACE.match(text):
        return Likeness.NO
    return _as_password(text)


def _as_password(text: str) -> Likeness:
    if text.isdigit():
        return Likeness.YES if len(text) >= _DIGITS else Likeness.WORD
    has_digit = any(char.isdigit() for char in text)
    has_symbol = any(not char.isalnum() and char not in "-_." for char in text)
    if len(text) >= _STRONG and (has_digit or (has_symbol and text.lower() != text)):
        return Likeness.YES
    return Likeness.WORD if any(char.isalnum() for char in text) else Likeness.NO


def stands_for_one(text: str) -> bool:
    """Whether `text` names a source or a type of credentials, or says that one is left out."""
    text = text.strip()
    return bool(
        not text
        or REFERENCE.search(text)
        or _PLACEHOLDER.fullmatch(text)
        or _TYPE.fullmatch(text)
        or _MEASURE.fullmatch(text)
        or is_sample(text)
    )


def is_random(text: str) -> bool:
    """Whether a machine drew the characters: capitals, small letters and digits alternate in it.

    Words, identifiers and names with a number at the end change from one kind of character to
    another only a few times; a capital followed by small letters is the beginning of a word, and
    what stands between words does not count.
    """
    signs = [char for char in text if char not in _BETWEEN_WORDS]
    if len(signs) < _RANDOM or any(char.isspace() for char in text) or text.isdigit():
        return False
    changes = sum(
        _kind(left) != _kind(right) and not (left.isupper() and right.islower())
        for left, right in pairwise(text)
        if left not in _BETWEEN_WORDS and right not in _BETWEEN_WORDS
    )
    share = changes / (len(signs) - 1)
    if any(char.isdigit() for char in signs):
        return share >= 0.22  # noqa: PLR2004 - drawn from 16 or more characters it is 0.4 and more
    return len(signs) >= _RANDOM_WITHOUT_DIGITS and share >= 0.2  # noqa: PLR2004 - as above


def is_sample(text: str) -> bool:
    """A run of few characters, or one that says so: how documentation writes keys."""
    if text.endswith("EXAMPLE") or text.endswith("EXAMPLEKEY"):
        return True
    body = re.sub(r"[^A-Za-z0-9]", "", text)[-12:]
    if not body:
        return False
    counts = Counter(body)
    entropy = -sum(n / len(body) * math.log2(n / len(body)) for n in counts.values())
    return entropy < 1.0


def _kind(char: str) -> int:
    return 2 if char.isdigit() else 1 if char.isupper() else 0 if char.isalpha() else 3
