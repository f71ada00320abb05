"""Secrets that nobody told us about, recognised by their shape.

The shapes are narrow on purpose: SQL, plan ids, fingerprints and file names must come through. No
shape takes text for a secret because it looks random.
"""

from __future__ import annotations

import re

Span = tuple[int, int]

BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# A line inside a private key, whatever indents, quotes or diff signs are around it.
KEY_BODY = re.compile(
    r"[\s>|#+\-\"']{0,40}"
    r"(?:[A-Za-z0-9+/=]{0,200}|(?:Proc-Type|DEK-Info|Version|Comment): ?.{0,100})"
    r"(?:\\[rn]|[\"',+\s]){0,10}"
)

_TOKENS = re.compile(
    r"""
      gh[pousr]_[A-Za-z0-9_]{16,255}(?:[.\-][A-Za-z0-9_\-]{1,2000}){0,8}      # GitHub
    | github_pat_[A-Za-z0-9_]{20,255}
    | \b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b                                # AWS access key id
    | \bxox[abeoprs]-[A-Za-z0-9\-]{10,250}                                   # Slack
    | \bxapp-[A-Za-z0-9\-]{10,250}
    | hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}
    | \beyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,4000}(?:\.[A-Za-z0-9_\-]{0,1500})?  # JWT
    | \bAIza[A-Za-z0-9_\-]{35}                                               # Google
    | \bya29\.[A-Za-z0-9_\-]{20,500}
    | \bdapi[0-9a-f]{32}(?:-[0-9])?                                          # Databricks
    | \bglpat-[A-Za-z0-9_\-]{20,100}                                         # GitLab
    | \bpypi-AgE[A-Za-z0-9_\-]{50,500}
    | \bnpm_[A-Za-z0-9]{36}\b
    | \b[rs]k_live_[A-Za-z0-9]{16,100}
    | \bhf_[A-Za-z0-9]{30,60}\b
    | -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----.{0,9000}?-----END\ [A-Z0-9 ]{0,40}
      PRIVATE\ KEY(?:\ BLOCK)?-----                                          # in one (escaped) line
    """,
    re.VERBOSE,
)

# One group each: the part that must not be shown. Everything around it may stay.
_PARTS = (
    re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,200}:([^\s/\"'<>]{1,500})@"),
    re.compile(r"(?i)\bjdbc:oracle:\w{1,10}:[^/\s:]{1,100}/([^@\s\"']{1,200})@"),
    re.compile(
        r"(?i)authorization\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}\\{0,3}[\"']?"
        r"((?:basic|bearer|token|digest)?\s{0,3}[^\s\"'\\]{4,4000})"
    ),
    re.compile(r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/\-]{16,4000}={0,2})"),
    re.compile(r"(?i)\bidentified\s{1,3}by\s{1,3}'([^'\n]{1,200})'"),
    re.compile(r"(?i)--(?:password|passwd|token|secret|api-key)\s{1,3}([^\s\"'-][^\s\"']{0,200})"),
)

_PAIR = re.compile(
    r"""
    (?P<key> passwords? | passwd | passphrase | \bpwd | secret | token | credentials?
      | (?:api|access|private|secret|client|account|encryption)[._\-]?(?:access[._\-]?)?
        (?:key|secret)(?:[._\-]?id)?
      | \baccount\.key\.[\w.\-]{1,100} | sharedaccess(?:key|signature)
      | \bsig (?=\s?=\s?[\w%+/]{30})
    )
    \\{0,3}["'`]? (?P<gap>\s{0,3}) (?P<sign>=>|:=|==|=|:) (?P<space>\s{0,3})
    (?: (?P<quote>\\{0,3}["'])(?P<quoted>(?:(?!(?P=quote)).){1,500})(?P=quote)
      | (?P<bare>[^\s"'`,;&)}\]|<>\\]{1,500}) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ALWAYS = re.compile(r"passw|passphrase|pwd|sig$|sharedaccess", re.IGNORECASE)
# Values that say where a secret comes from, what type a column has, or that it was taken out.
_NOT_A_SECRET = re.compile(
    r"""
      \*+ | null | none | true | false | \?|:\w+ | @\w+ | %\(?\w* | \{.* | \$.* | <.* | \[.*
    | (?:n?varchar|text|string|char|binary|varbinary|bytes|int|integer|bigint|smallint|tinyint|float
      |double|decimal|numeric|bool|boolean|date|datetime|timestamp\w*|uuid|json|str|any|optional
      |struct|array|map)\b.*
    | env_var.* | os\.(?:environ|getenv).* | getenv.* | var\(.* | secrets?\..* | config\..*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\(?")
_RANDOM_MIN = 8


def shape_spans(line: str) -> list[Span]:
    """Where in one line something has the shape of a secret."""
    spans = [match.span() for match in _TOKENS.finditer(line)]
    for pattern in _PARTS:
        spans += [match.span(1) for match in pattern.finditer(line)]
    for match in _PAIR.finditer(line):
        group = "quoted" if match["quoted"] is not None else "bare"
        if _is_secret(match["key"], match["sign"], match["space"], match[group], group):
            spans.append(match.span(group))
    return spans


def _is_secret(key: str, sign: str, space: str, value: str, group: str) -> bool:
    """Whether the value of a `key sign value` pair is a secret, or only SQL that looks like one."""
    if _NOT_A_SECRET.fullmatch(value.strip()):
        return False
    if group == "quoted":
        return bool(value.strip())
    name = value.rstrip("(").rsplit(".", 1)[-1].lower()
    if _NAME.fullmatch(value) and (key.lower() in name or "." in value or value.endswith("(")):
        return False  # `on a.token = b.token`, `token=token`, `password = get(...)`
    if _ALWAYS.search(key):
        return True
    if sign in (":", "==") or (space and sign == "="):
        # `token: daily` and `token = id` are prose, YAML or SQL; a token is long and has digits.
        return (
            len(value) >= _RANDOM_MIN
            and any(char.isdigit() for char in value)
            and (not value.isdigit())
        )
    return not value.isdigit() or len(value) >= _RANDOM_MIN
