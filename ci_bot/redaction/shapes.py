"""One table of what credentials look like, for files, logs and comments.

`ISSUED` are credentials that their form alone shows: their issuers document a prefix or a form.
`PLACED` are texts that are credentials because of their place: in an address, a header, a
statement, or on a command line. Passwords that only a name shows (`password: x`) are in `literals`.

The shapes are narrow on purpose: SQL, plan ids, fingerprints and file names must stay as they are.
No shape matches a text because it looks random, and none is shorter than its replacement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_AWS_KEY = "an AWS access key"

# The same kind of leak has one name in all its spellings.
_ON_A_COMMAND_LINE = "a password on a command line"
_IN_AN_ADDRESS = "a password in an address"
_IN_A_STATEMENT = "a password in a statement"
_IN_A_SETTING = "a credential in a setting"

Span = tuple[int, int]

BEGIN_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
END_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# A line inside a private key, with any indents, quotes or diff signs around it.
KEY_BODY = re.compile(
    r"[\s>|#+\-\"']{0,40}"
    r"(?:[A-Za-z0-9+/=]{0,200}|(?:Proc-Type|DEK-Info|Version|Comment): ?.{0,100})"
    r"(?:\\[rn]|[\"',+\s]){0,10}"
)


@dataclass(frozen=True)
class CredentialShape:
    """What one kind of credential looks like.

    Attributes:
        what: The kind, as the end of a sentence: "the line holds ...".
        marks: Every text with this shape has one of these in it, in lower case. So most texts are
            skipped without trying the pattern.
        pattern: Its only group is the part that must not be shown; without a group all of it is.
    """

    what: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]

    def find_spans(self, text: str) -> Iterator[Span]:
        """Yields the places in `text` that must not be shown."""
        group = self.pattern.groups
        for found in self.pattern.finditer(text):
            yield found.span(group)


def _make_credential_shape(what: str, marks: str, pattern: str) -> CredentialShape:
    return CredentialShape(what, tuple(marks.split()), re.compile(pattern))


ISSUED: tuple[CredentialShape, ...] = (
    _make_credential_shape(
        _AWS_KEY,
        "akia asia abia acca",
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _make_credential_shape(_AWS_KEY, "absk", r"\bABSK[A-Za-z0-9+/]{100,280}={0,2}"),
    _make_credential_shape("a Google key", "aiza", r"\bAIza[A-Za-z0-9_\-]{35}"),
    _make_credential_shape("a Google token", "ya29.", r"\bya29\.[A-Za-z0-9_\-]{20,500}"),
    _make_credential_shape("a Google client secret", "gocspx-", r"\bGOCSPX-[A-Za-z0-9_\-]{28}"),
    _make_credential_shape(
        "an Azure client secret",
        "q~",
        r"(?<![A-Za-z0-9_~.\-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}",
    ),
    _make_credential_shape(
        "an Azure key",
        "accountkey= sharedaccesskey=",
        r"(?i)\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{20,100}={0,2})",
    ),
    _make_credential_shape(
        "a shared access signature", "sig=", r"[?&;]sig=([A-Za-z0-9%+/]{20,200}=?)"
    ),
    _make_credential_shape(
        "a Databricks token", "dapi dose", r"\b(?:dapi|dose)[0-9a-f]{32}(?:-[0-9])?\b"
    ),
    _make_credential_shape(
        "a GitHub token",
        "gho_ ghp_ ghr_ ghs_ ghu_",
        r"gh[pousr]_[A-Za-z0-9_]{16,255}(?:[.\-][A-Za-z0-9_\-]{1,2000}){0,8}",
    ),
    _make_credential_shape("a GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    _make_credential_shape(
        "a GitLab token",
        "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- gloas-",
        r"\bgl(?:pat|dt|rt|ptt|cbt|ft|soat|agent|oas)-[A-Za-z0-9_\-]{20,300}"
        r"(?:\.[A-Za-z0-9_\-]{2,20}){0,2}",
    ),
    _make_credential_shape("a Slack token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,250}"),
    _make_credential_shape("a Slack token", "xapp-", r"\bxapp-[A-Za-z0-9\-]{10,250}"),
    _make_credential_shape(
        "a Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/\w{4,12}/([A-Za-z0-9+/]{20,100})"
    ),
    _make_credential_shape(
        "a Discord webhook", "/api/webhooks/", r"discord\w{0,3}\.com/api/webhooks/(\d+/[\w\-]{30,})"
    ),
    _make_credential_shape(
        "a payment key", "k_live_ k_test_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{8,100}"
    ),
    _make_credential_shape("a payment key", "whsec_", r"\bwhsec_[A-Za-z0-9+/]{24,100}={0,2}"),
    _make_credential_shape(
        "an API key",
        "sk-",
        r"\bsk-(?:proj|svcacct|admin|ant|or|lf|live)-[A-Za-z0-9_\-]{20,400}",
    ),
    _make_credential_shape("an API key", "sk-", r"\bsk-[A-Za-z0-9]{32,200}\b"),
    _make_credential_shape("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,60}\b"),
    _make_credential_shape("a PyPI token", "pypi-age", r"\bpypi-AgE[A-Za-z0-9_\-]{50,1000}"),
    _make_credential_shape("an npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _make_credential_shape("a Docker token", "dckr_pat_", r"\bdckr_pat_[A-Za-z0-9_\-]{20,60}"),
    _make_credential_shape(
        "a SendGrid key", "sg.", r"\bSG\.[A-Za-z0-9_\-]{20,24}\.[A-Za-z0-9_\-]{39,50}"
    ),
    _make_credential_shape("a Vault token", "hvs. hvb.", r"\bhv[sb]\.[A-Za-z0-9_\-]{24,300}"),
    _make_credential_shape("a DigitalOcean token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    _make_credential_shape("a Grafana token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b"),
    _make_credential_shape("a Grafana token", "glc_", r"\bglc_[A-Za-z0-9+/]{32,400}={0,2}"),
    _make_credential_shape("a dbt Cloud token", "dbtc_ dbtu_", r"\bdbt[cu]_[A-Za-z0-9_\-]{30,120}"),
    _make_credential_shape("an Airtable token", "pat", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b"),
    _make_credential_shape("an Aiven password", "avns_", r"\bAVNS_[A-Za-z0-9_\-]{15,40}"),
    _make_credential_shape("a Neon password", "npg_", r"\bnpg_[A-Za-z0-9]{10,40}\b"),
    _make_credential_shape(
        "a PlanetScale password", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[\w=.\-]{32,64}"
    ),
    _make_credential_shape("a Pulumi token", "pul-", r"\bpul-[0-9a-f]{40}\b"),
    _make_credential_shape(
        "a Supabase key", "sbp_ sb_secret_", r"\b(?:sbp_[0-9a-f]{40}|sb_secret_[\w\-]{20,60})"
    ),
    _make_credential_shape("a New Relic key", "nrak-", r"\bNRAK-[A-Z0-9]{27}\b"),
    _make_credential_shape(
        "a Doppler token", "dp.", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.\-]{40,80}"
    ),
    _make_credential_shape("a Sentry token", "sntry", r"\bsntry[su]_[A-Za-z0-9+/=_]{40,500}"),
    _make_credential_shape(
        "a Terraform token", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=\-]{60,70}"
    ),
    _make_credential_shape("a Postman key", "pmak-", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b"),
    _make_credential_shape("a Telegram token", ":aa", r"\b[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}\b"),
    _make_credential_shape("an age key", "age-secret-key-1", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _make_credential_shape(
        "a signed token",
        "eyj",
        r"\beyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,4000}(?:\.[A-Za-z0-9_\-]{0,1500})?",
    ),
    # PKCS #8 of an RSA key in one line: version, algorithm, and the beginning of the octet string.
    _make_credential_shape(
        "a private key",
        "ibadanbgkqhkig9w0baqefaas",
        r"\bMII[A-Za-z0-9+/]{1,6}IBADANBgkqhkiG9w0BAQEFAAS[A-Za-z0-9+/]{20,9000}={0,2}",
    ),
    # On one line, with escaped line breaks. `redactor` knows the form that spans lines.
    CredentialShape(
        "a private key",
        ("private key",),
        re.compile(rf"{BEGIN_KEY.pattern}.{{0,9000}}?{END_KEY.pattern}"),
    ),
)

_QUOTED_WORDS = (
    "password|secret|secret_access_key|access_key_id|key_id|session_token|bearer_token|token|"
    "client_secret|connection_string|account_key|aws_secret_key|aws_key_id"
)

PLACED: tuple[CredentialShape, ...] = (
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "://",
        r"[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,200}:([^\s/\"'<>]{3,500})@",
    ),
    # For SQLAlchemy every character except `@` may be a part of the password. So it may have a
    # slash, like passwords that are random base64. What follows a port, a variable or the name of a
    # repository is a path.
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "://",
        r"(?<![A-Za-z0-9+.\-])(?!(?:git\+)?(?:ssh|git|file)://)[A-Za-z][A-Za-z0-9+.\-]{0,30}://"
        r"[^\s:/@\"'<>]{0,200}:(?!(?:\d{1,5}|(?i:port)|\$\w+|\$?\{+[^\s{}/]{0,100}\}+|%\w)[/,])"
        r"([^\s/@\"'<>]{0,200}/[^\s@\"'<>]{2,300})@[\w\[{$.\-]",
    ),
    # Inside one kind of quotes the other kind is an ordinary character.
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "://",
        r"(?<=\")[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,200}:(?!\d{1,5}['/,])"
        r"([^\s@\"]{0,200}['<>][^\s@\"]{2,300})@[\w\[{$.\-]",
    ),
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "://",
        r"(?<=')[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s:/@\"'<>]{0,200}:(?!\d{1,5}[\"/,])"
        r"([^\s@']{0,200}[\"<>][^\s@']{2,300})@[\w\[{$.\-]",
    ),
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "jdbc:oracle:",
        r"(?i)\bjdbc:oracle:\w{1,10}:[^/\s:]{1,100}/([^\s\"']{3,200}?)@",
    ),
    _make_credential_shape(
        _IN_AN_ADDRESS,
        "password= passwd= pwd=",
        r"(?i)[?&;](?:password|passwd|pwd)=([^\s&;'\"]{3,200})",
    ),
    _make_credential_shape(
        "a password in a connection string",
        "password=",
        r"(?i)\b(?:host|user|dbname|port)=[^\s\"',]{1,200}\s{1,3}(?:\w{1,30}=[^\s\"',]{1,200}\s{1,3})"
        r"{0,8}password=([^\s\"',]{3,200})",
    ),
    _make_credential_shape(
        "an authorization header",
        "authorization",
        r"(?i)\bauthorization\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}\\{0,3}[\"']?"
        r"((?:basic|bearer|token|digest)\s{1,3}[^\s\"'\\]{3,4000}|[^\s\"'\\]{4,4000})",
    ),
    _make_credential_shape(
        "a bearer token", "bearer", r"(?i)\bbearer\s{1,3}([A-Za-z0-9._~+/\-]{16,4000}={0,2})"
    ),
    _make_credential_shape(
        _IN_A_STATEMENT,
        "identified",
        r"(?i)\bidentified\s{1,3}by\s{1,3}(?:password\s{1,3})?'([^'\n]{3,200})'",
    ),
    _make_credential_shape(
        _IN_A_STATEMENT,
        "password secret token key_id aws_secret_key connection_string account_key",
        rf"(?i)\b(?:{_QUOTED_WORDS})\s{{1,3}}'([^'\n]{{3,400}})'",
    ),
    _make_credential_shape(
        _ON_A_COMMAND_LINE,
        "--password --passwd --token --secret --api-key",
        r"(?i)--(?:password|passwd|token|secret|api-key)\s{1,3}[\"']?([^\s\"'-][^\s\"']{2,200})",
    ),
    _make_credential_shape(
        _ON_A_COMMAND_LINE,
        "curl",
        r"\bcurl\b.{0,300}?\s(?:-u|--user)[\s=]{1,3}[\"']?[^\s:\"']{1,100}:([^\s\"']{3,200})",
    ),
    # `-p` and the password in one word; with a blank between them the program asks for it, and
    # docker's `-p` names ports.
    _make_credential_shape(
        _ON_A_COMMAND_LINE,
        "mysql mariadb",
        r"(?:^|[\s/\"'`(;&|])(?:mysql|mariadb)(?:-?(?:admin|dump|import|check|show|slap|pump|binlog"
        r"|sh|backup))?(?![\w\-.])[^\n|;&]{0,300}?[\s\"',]-p"
        r"(?!(?:[\d.]+:)?\d{1,5}(?::\d{1,5})?(?:/\w+)?(?:[\s\"']|$))"
        r"[\"']?([^\s\"'$%{<,\-][^\s\"'<>|;&]{2,200})",
    ),
    _make_credential_shape(
        _ON_A_COMMAND_LINE,
        "sshpass",
        r"\bsshpass\s{1,3}-p\s{0,3}[\"']?([^\s\"'$%{<\-][^\s\"']{2,200})",
    ),
    _make_credential_shape(
        "a password for a machine",
        "machine",
        r"(?i)\bmachine\s{1,9}\S{1,100}\s{1,9}login\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(\S{3,200})",
    ),
    _make_credential_shape(
        "a password for a database",
        ":54 :6432: :3306:",
        r"(?<![\w.\-])[\w.\-]{1,100}:(?:54\d\d|6432|3306):[\w*\-]{1,60}:[\w*\-]{1,60}:(\S{3,200})",
    ),
    # spark-defaults.conf: name and value with only blanks between them.
    _make_credential_shape(
        _IN_A_SETTING,
        "spark. fs. javax. hive.",
        r"(?i)(?:^|[\s+>])(?:spark|fs|javax|hive)\.[\w.\-]{0,200}"
        r"(?:password|secret\.key|secret|token|access\.key|account\.key[\w.\-]{0,120})"
        r"[ \t]{1,40}(\S{4,500})\s*$",
    ),
    # Hadoop's XML.
    _make_credential_shape(
        _IN_A_SETTING,
        "<value>",
        r"(?is)<name>[^<]{0,200}(?:password|secret|token|access\.key|account\.key)[^<]{0,120}</name>"
        r"\s{0,200}<value>([^<]{3,500})</value>",
    ),
)

# The input of parsers, as their failures repeat it: perhaps a whole connection with its password,
# and cut in the middle, so that no name is before the value any more.
ECHOED: tuple[CredentialShape, ...] = (
    _make_credential_shape(
        "an input", "input_value=", r"\binput_value=(.{3,2000}?)(?=, input_type=)"
    ),
    _make_credential_shape("an input", "undefined alias", r"\bundefined alias '([^'\n]{3,500})'"),
    _make_credential_shape(
        "an input", "constructor", r"\bconstructor for the tag '([^'\n]{3,500})'"
    ),
    _make_credential_shape("an input", "duplicate", r"\bwith value \"([^\"\n]{3,500})\""),
    _make_credential_shape("an input", "duplicate", r"\boriginal value: \"([^\"\n]{3,500})\""),
)
# A YAML parser says where it failed, and repeats the line there, whatever it is a part of.
YAML_MARK = re.compile(r"\s*in \"[^\"]{0,1000}\", line \d+, column \d+:\s*")
YAML_VALUE = re.compile(r"[^:]{0,1000}:\s*(\S.{2,})|\s*(?:- *)?(\S.{2,})")


@dataclass(frozen=True)
class CredentialShapeSet:
    """The shapes that a text may hold; to choose them once for a file is faster than for each line.

    Attributes:
        issued: credentials that their form alone shows.
        placed: texts that are credentials because of their place.
    """

    issued: tuple[CredentialShape, ...] = ISSUED
    placed: tuple[CredentialShape, ...] = PLACED

    @classmethod
    def select_for_text(cls, text: str) -> CredentialShapeSet:
        """Selects the shapes with a mark that appears in `text`."""
        lowered = text.lower()
        return cls(
            *(_select_marked_credential_shapes(shapes, lowered) for shapes in (ISSUED, PLACED))
        )


EVERY = CredentialShapeSet()


def find_issued_credentials(
    text: str, shapes: CredentialShapeSet = EVERY
) -> Iterator[tuple[CredentialShape, Span]]:
    """Yields the credentials in one line that their form alone shows."""
    yield from _find_credential_shapes(shapes.issued, text)


def find_echoed_secret_input(text: str) -> Iterator[tuple[CredentialShape, Span]]:
    """Yields the input that parsers repeat in one line of text."""
    yield from _find_credential_shapes(ECHOED, text)


def find_placed_credentials(
    text: str, shapes: CredentialShapeSet = EVERY
) -> Iterator[tuple[CredentialShape, Span]]:
    """Yields the texts in one line that are credentials because of their place."""
    yield from _find_credential_shapes(shapes.placed, text)


def _find_credential_shapes(
    shapes: tuple[CredentialShape, ...], text: str
) -> Iterator[tuple[CredentialShape, Span]]:
    for shape in _select_marked_credential_shapes(shapes, text.lower()) if shapes else ():
        for span in shape.find_spans(text):
            yield shape, span


def _select_marked_credential_shapes(
    shapes: tuple[CredentialShape, ...], lowered: str
) -> tuple[CredentialShape, ...]:
    return tuple(shape for shape in shapes if any(mark in lowered for mark in shape.marks))
