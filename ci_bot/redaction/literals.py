"""Whether a piece of text is a credential: by the name beside it, and by its form."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum, IntEnum, auto
from itertools import pairwise

from ci_bot.redaction.shapes import Span

# "DBPassword" and "db_password" have the same words.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
# Last words of a name that say whose or which it is, but not what.
_WHICH = frozenset({
    "prod", "production", "dev", "test", "stage", "staging", "ci", "main", "default", "old",
    "new", "ro", "rw", "value", "plain", "string", "raw", "b64", "base64", "encoded", "base",
})  # fmt: skip
# Also in the languages of a project's people: German, Dutch, Spanish, French ("mot de passe").
_PASSWORD_WORDS = re.compile(
    r"\w*(?:password|passwd|passphrase|passcode|pwd|passwort|kennwort|wachtwoord|contrasena"
    r"|motdepasse)|pass|pw"
)
_TOKEN = re.compile(
    r"\w*(?:secret|token|apikey|accesskey|secretkey|privatekey|authkey)|credentials?|jwt|pat|sas|auth"
)
# A "key" is a credential only with one of these before it, because data has keys, too.
_KEYS = frozenset({
    "api", "access", "secret", "private", "account", "encryption", "signing", "auth", "client",
    "master", "shared", "storage", "session", "subscription", "app",
})  # fmt: skip
_STORAGE_ACCOUNT = re.compile(r"account[._]key[._]\w", re.IGNORECASE)


class SettingContent(Enum):
    """What a setting holds, by its name."""

    PASSWORD = auto()  # made by people, so words and digits are enough
    TOKEN = auto()  # made by machines, so it looks random
    NOTHING = auto()


def split_words_of_secret_name(name: str) -> list[str]:
    """Splits `name` into words in lower case, from camel, snake or kebab case."""
    parts = _SEPARATORS.split(_HUMP.sub(" ", name))
    return [part.lower() for part in parts if part]


def classify_secret_setting(name: str) -> SettingContent:
    """Says what a setting called `name` holds. The last word counts.

    So a `password_hash`, a `token_count` and a `passport` hold nothing, nor does a column of
    `tokens`.
    """
    if _STORAGE_ACCOUNT.search(name):
        return SettingContent.TOKEN
    found = split_words_of_secret_name(name)
    while len(found) > 1 and (found[-1] in _WHICH or found[-1].isdigit()):
        found.pop()
    if not found:
        return SettingContent.NOTHING
    last, before = found[-1], found[-2] if len(found) > 1 else ""
    if _PASSWORD_WORDS.fullmatch(last) or (last, before) == ("passe", "de"):
        return SettingContent.PASSWORD
    if _TOKEN.fullmatch(last) or (last == "key" and before in _KEYS):
        return SettingContent.TOKEN
    return SettingContent.NOTHING


# If a value is known, masking too much only costs a `***`: so every word counts.
_SUSPECT = frozenset({
    "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "pw", "pass", "secret",
    "secrets", "token", "tokens", "credential", "credentials", "creds", "apikey", "dsn", "pat",
    "sas", "jwt", "bearer", "signature", "sig", "auth", "authkey", "otp", "netrc",
    "pgpass", "key", "keys", "keystore", "truststore", "webhook",
})  # fmt: skip
_SUSPECT_PART = re.compile(
    r"passw|passphrase|kennwort|wachtwoord|contrase|motdepasse|secret|token(?!iz)|credential|apikey|accesskey|privatekey|secretkey"
)
# As the last word, these say that the value is a place or a switch.
_PLACES = frozenset({
    "file", "path", "dir", "directory", "url", "uri", "endpoint", "host", "port", "enabled",
    "disabled", "type", "algorithm", "provider", "scope", "class", "version", "ttl", "timeout",
    "interval", "sock", "socket", "id", "email", "name", "user", "username",
})  # fmt: skip


def is_name_of_secret(name: str) -> bool:
    """Whether the value of a variable or a member with this name counts as a secret.

    Args:
        name: Of a variable of the environment, or of a member of a structured value.
    """
    found = split_words_of_secret_name(name)
    if not found:
        return False
    if found[-2:] == ["key", "id"] and "access" not in found:
        return True  # a service account's private_key_id names a key that is still valid
    if found[-1] in _PLACES:
        return False
    return any(word in _SUSPECT or _SUSPECT_PART.search(word) for word in found)


SHORTEST = 4
_STRONG = 8
_DIGITS = 6
_RANDOM = 10
_RANDOM_WITHOUT_DIGITS = 20
_BETWEEN_WORDS = frozenset("-_./:,=@ ")

# Texts that say where a value comes from, instead of the value.
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
# A version with its usual endings, a date or a time, or a number with a unit of time or size. With
# any other word after the number it would be a password.
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


class SecretLikeness(IntEnum):
    """How much a text looks like a credential."""

    NO = 0
    WORD = 1
    YES = 2


def judge_likeness_to_secret(
    text: str, *, made_by_people: bool, may_be_path: bool = True
) -> SecretLikeness:
    """Judges how much `text`, a literal, looks like a credential.

    Args:
        made_by_people: It would be a password: words with a digit are enough, and plain words are
            `WORD`. Otherwise it would be a token or key, which machines make, so it has to look
            random.
        may_be_path: Whether a text with slashes names a file; after `user:` in an address it does
            not.
    """
    text = text.strip()
    if len(text) < SHORTEST or not text.isprintable() or is_stand_in_for_secret(text):
        return SecretLikeness.NO
    if is_random_like_secret(text):
        return SecretLikeness.YES
    if not made_by_people or any(char.isspace() for char in text):
        return SecretLikeness.NO
    if may_be_path and _PLACE.match(text):
        return SecretLikeness.NO
    return _judge_likeness_to_password(text)


def _judge_likeness_to_password(text: str) -> SecretLikeness:
    if text.isdigit():
        return SecretLikeness.YES if len(text) >= _DIGITS else SecretLikeness.WORD
    has_digit = any(char.isdigit() for char in text)
    has_symbol = any(not char.isalnum() and char not in "-_." for char in text)
    if len(text) >= _STRONG and (has_digit or (has_symbol and text.lower() != text)):
        return SecretLikeness.YES
    return SecretLikeness.WORD if any(char.isalnum() for char in text) else SecretLikeness.NO


def is_stand_in_for_secret(text: str) -> bool:
    """Whether `text` names a source or a type of credentials, or says that one is left out."""
    text = text.strip()
    return bool(
        not text
        or REFERENCE.search(text)
        or _PLACEHOLDER.fullmatch(text)
        or _TYPE.fullmatch(text)
        or _MEASURE.fullmatch(text)
        or is_sample_of_secret(text)
    )


def is_random_like_secret(text: str) -> bool:
    """Whether a machine seems to have made it: capitals, small letters and digits alternate.

    Words, identifiers and names with a number at the end change between kinds of characters only a
    few times. A capital followed by small letters is the beginning of a word, and characters
    between words do not count.
    """
    signs = [char for char in text if char not in _BETWEEN_WORDS]
    if len(signs) < _RANDOM or any(char.isspace() for char in text) or text.isdigit():
        return False
    changes = sum(
        _classify_character(left) != _classify_character(right)
        and not (left.isupper() and right.islower())
        for left, right in pairwise(text)
        if left not in _BETWEEN_WORDS and right not in _BETWEEN_WORDS
    )
    share = changes / (len(signs) - 1)
    if any(char.isdigit() for char in signs):
        return share >= 0.22  # noqa: PLR2004 - drawn from 16 or more characters it is 0.4 and more
    return len(signs) >= _RANDOM_WITHOUT_DIGITS and share >= 0.2  # noqa: PLR2004 - as above


def is_sample_of_secret(text: str) -> bool:
    """Whether it has few different characters, or says EXAMPLE: so documentation writes keys."""
    if text.endswith("EXAMPLE") or text.endswith("EXAMPLEKEY"):
        return True
    body = re.sub(r"[^A-Za-z0-9]", "", text)[-12:]
    if not body:
        return False
    counts = Counter(body)
    entropy = -sum(n / len(body) * math.log2(n / len(body)) for n in counts.values())
    return entropy < 1.0


def _classify_character(char: str) -> int:
    return 2 if char.isdigit() else 1 if char.isupper() else 0 if char.isalpha() else 3


# Passwords in running text that only a name shows, such as `password=...`, `"token": "..."`.
#
# This is for texts that are shown. SQL and YAML that only mention passwords must stay as they are;
# whether something is a finding in a file is a separate question.


# Most lines have none of these, and the patterns below try every place of a line.
_MARKS = (
    "pass", "pwd", "secret", "token", "credential", "key", "sig", "sharedaccess", "auth",
    "kennwort", "wachtwoord", "contrase",
)  # fmt: skip
# An object between a name and its value: `"secret": {"value": "..."}`.
OBJECT_OF_VALUE = (
    r"""(?:\{\s{0,3}\\{0,3}["']?(?:value|plain|plaintext|raw|default)\\{0,3}["']?"""
    r"""\s{0,3}[:=]\s{0,3})?"""
)

_PAIR = re.compile(
    rf"""
    (?P<key> passwords? | passwd | passphrase | \bpwd | secret | token | credentials?
      | passwort | kennwort | wachtwoord | contrase[ñn]a | mot[_ ]de[_ ]passe
      | (?:(?<=[_.\-])|^[\s+>\-]{{0,40}})pass(?![a-z])
      | (?:api|access|private|secret|client|account|encryption)[._\-]?(?:access[._\-]?)?
        (?:key|secret)(?:[._\-]?id)?
      | \baccount\.key\.[\w.\-]{{1,100}} | sharedaccess(?:key|signature)
      | \bsig (?=\s?=\s?[\w%+/]{{30}}) | (?<![a-z])auth
    )
    (?:[_.\-](?:base|value|raw|b64|base64|prod|production|dev|test|staging|old|new|ro|rw|\d{{1,3}}))?
    \\{{0,3}}["'`]? (?P<gap>\s{{0,3}}) (?P<sign>=>|:=|:-|==|=|:) (?P<space>\s{{0,3}})
    {OBJECT_OF_VALUE}
    (?: (?P<quote>\\{{0,3}}["'])(?P<quoted>(?:(?!(?P=quote)).){{3,500}})(?P=quote)
      | ["'`]?(?P<bare>[^\s"'`,;&)}}\]|<>\\]{{3,500}}) )  # also where its quote has no end
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A setting and its value as two arguments: `.config("secret.key", "...")`, `getenv("P", "...")`.
_ARGUMENTS = re.compile(
    r"""(?P<mark>["'])(?P<name>[\w.\-]{1,200})(?P=mark)\s{0,3},\s{0,3}"""
    r"""(?P<quote>["'])(?P<value>[^"'\n]{4,500})(?P=quote)"""
)

_ALWAYS = re.compile(r"pass|pwd|kennwort|wachtwoord|contrase|sig$|sharedaccess", re.IGNORECASE)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\(?")
_RANDOM_MIN = 8


def find_spans_of_named_secrets(line: str) -> Iterator[Span]:
    """Yields the places in one line of values whose names say that they are secrets."""
    lowered = line.lower()
    if not any(mark in lowered for mark in _MARKS):
        return
    match = _PAIR.search(line)
    while match is not None:
        group = "bare" if match["quoted"] is None else "quoted"
        if _is_secret_of_pair(match, group):
            yield match.span(group)
            match = _PAIR.search(line, match.end())
        else:  # `${PASSWORD:-secret}`: the next pair may be in the value of this one
            match = _PAIR.search(line, match.end("sign"))
    for match in _ARGUMENTS.finditer(line):
        kind = classify_secret_setting(match["name"])
        if kind is not SettingContent.NOTHING and (
            judge_likeness_to_secret(match["value"], made_by_people=kind is SettingContent.PASSWORD)
            is SecretLikeness.YES
        ):
            yield match.span("value")


def _is_secret_of_pair(match: re.Match[str], group: str) -> bool:
    """Whether the value of `key sign value` is a secret, or SQL that only looks like one."""
    key, sign, value = match["key"], match["sign"], match[group]
    if is_stand_in_for_secret(value) or (
        key.lower() == "auth" and not is_random_like_secret(value)
    ):
        return False
    password = _ALWAYS.search(key) is not None
    compares = sign == "==" or (bool(match["space"]) and sign == "=")
    if group == "quoted":
        # `WHERE token = 'page_view'`: this is a word, not what a machine makes.
        return password or not compares or any(char.isdigit() for char in value)
    name = value.rstrip("(").rsplit(".", 1)[-1].lower()
    if _NAME.fullmatch(value) and (key.lower() in name or "." in value or value.endswith("(")):
        return False  # `on a.token = b.token`, `token=token`, `password = get(...)`
    if password:
        return True
    long = len(value) >= _RANDOM_MIN
    if compares or sign == ":":
        # `token: daily` and `token = id` are prose, YAML or SQL; a real token is long and has
        # digits.
        return long and any(char.isdigit() for char in value) and not value.isdigit()
    return long or not value.isdigit()


# Passwords of `.netrc`, whose entries are words with only blanks or line ends between them.
#
# The format is that of ftp(1): `machine NAME` or `default`, then `login`, `password` and `account`
# with a value each, in any order and on any number of lines.


# Characters that a diff, a quotation or a log puts before a line.
_BEFORE = r"[\s>|+\-]{0,40}"
_WORD = r"(?:\"[^\"\n]{0,500}\"|\S+)"
_MEMBERS = rf"(?:\s+(?:login|user|account|password)\s+{_WORD})*\s*"
_ENTRY = re.compile(rf"{_BEFORE}(?:machine\s+\S+|default){_MEMBERS}")
_REST = re.compile(rf"{_BEFORE}(?:login|user|account|password)\s+{_WORD}{_MEMBERS}")
_PASSWORD = re.compile(r"(?<!\S)password\s+(\"[^\"\n]{3,500}\"|\S{3,500})")
# The most lines of an entry: machine, login, password, account, and a comment or two.
_LONGEST_ENTRY = 6


class SecretEntryReader:
    """Reads lines in their order, and knows whether the next one belongs to an entry."""

    def __init__(self) -> None:
        self._in_entry = False

    def list_passwords(self, line: str) -> list[Span]:
        """Returns the places of an entry's passwords in `line`.

        A line with only such a password counts as one without its entry, too, if the value looks
        like a password: `password required` is a sentence.
        """
        begins = _ENTRY.fullmatch(line) is not None
        member = not begins and _REST.fullmatch(line) is not None
        in_entry = begins or (self._in_entry and (member or _is_skipped(line)))
        self._in_entry = in_entry
        if not (begins or member):
            return []
        return [
            found.span(1)
            for found in _PASSWORD.finditer(line)
            if _is_password(found[1], sure=in_entry)
        ]


def list_entry_passwords(lines: Sequence[str], number: int) -> list[Span]:
    """Returns the places of entries' passwords in one line of a file.

    Args:
        lines: The lines of the file.
        number: Which of them, from 0.
    """
    if "password" not in lines[number]:
        return []
    reader, found = SecretEntryReader(), list[Span]()
    for line in lines[max(0, number - _LONGEST_ENTRY) : number + 1]:
        found = reader.list_passwords(line)
    return found


def _is_password(value: str, *, sure: bool) -> bool:
    if is_stand_in_for_secret(value):
        return False
    return sure or judge_likeness_to_secret(value, made_by_people=True) is SecretLikeness.YES


def _is_skipped(line: str) -> bool:
    """Whether a line inside an entry is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")
