"""Credentials in files. The evidence never repeats a value: it names only the line."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from ci_bot.protocol.files import is_file_read_by_a_rule
from ci_bot.protocol.rules import find_rule
from ci_bot.redaction import (
    BEGIN_KEY,
    EVERY,
    OBJECT_OF_VALUE,
    SHORTEST,
    CredentialShapeSet,
    SecretLikeness,
    SettingContent,
    classify_secret_setting,
    find_issued_credentials,
    find_placed_credentials,
    is_random_like_secret,
    is_sample_of_secret,
    is_stand_in_for_secret,
    judge_likeness_to_secret,
    list_entry_passwords,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_file

# Credentials in the lines of a file: the kind, and how sure the finding is, but never the value.
#
# A text about passwords contains no password. So a name is not enough: its value must be a literal,
# and the literal must look like a credential (`judge_likeness_to_secret`).


# Longer lines are data; only credentials with a known format are searched in them.
LONGEST_LINE = 20_000

# The kind of a file decides what a value without quotes is: in code and SQL it is an expression, in
# prose it is the next word. All other files count as files of settings.
_CODE = frozenset({
    ".py", ".ipynb", ".json", ".toml", ".tf", ".js", ".jsx", ".ts", ".tsx", ".java", ".kt",
    ".scala", ".go", ".rs", ".rb", ".r", ".php", ".pl", ".c", ".cpp", ".h", ".cs", ".swift",
    ".lua", ".groovy", ".gradle", ".ps1", ".vue",
})  # fmt: skip

_SQL = frozenset({".sql", ".jinja"})
_STORES = ("AWS_", "AZURE_", "GCS_", "S3_")

_PROSE = frozenset({
    ".md", ".rst", ".adoc", ".txt", ".html", ".csv", ".tsv", ".log", ".svg", ".css",
})  # fmt: skip
# Files whose format has no names for values.
_NETRC = frozenset({".netrc", "_netrc", ".authinfo"})
_PGPASS = frozenset({".pgpass", "pgpass.conf"})

_CELL_END = re.compile(r"[,;\t|]")

_QUICK = re.compile(
    r"pass|pwd|pw\b|secret|token|key|credential|auth|jwt|pat\b|sas\b|kennwort|wachtwoord|contrasena"
)

_LITERAL = r"""(?: "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )"""

_NAMED = re.compile(
    rf"""(?x)
    (?P<name> ["'`]? (?<![\w.\-])[A-Za-z_][\w.\-]{{0,200}} ["'`]? ) (?:\s{{0,3}}\])?
    \s{{0,20}} (?: : (?:\s{{0,3}}str)? \s{{0,3}} =? | => | = (?!=) ) \s{{0,20}}
    {OBJECT_OF_VALUE}
    (?P<value> [rbfuRBFU]{{0,2}} {_LITERAL} | [^\s,;\#)}}\]][^\s,;)}}\]]{{0,999}} )
    """
)

_TO_BLANK = re.compile(r"\S{1,1000}")

_ARGUMENTS = re.compile(
    rf"""(?x) (?P<name> ["'][\w.\-]{{1,200}}["'] ) \s{{0,3}} , \s{{0,3}} (?P<value> {_LITERAL} )"""
)

_IN_SQL = re.compile(
    r"""(?ix) ^\s* SET \s+ (?P<name> \w+(?:\.[\w\-]+)+ ) \s* = \s* (?P<value> \S+? ) \s* ;? \s* $"""
)

_DEFAULT = re.compile(
    r"""(?x) (?: env_var | getenv | environ\.get ) \( \s{0,3}
    ["'](?P<name>[\w.\-]{1,200})["'] \s{0,3} , \s{0,3} ["'](?P<value>[^"'\n]{1,500})["'] """
)

_SHELL_DEFAULT = re.compile(r"\$\{(?P<name>\w{1,200}):?-(?P<value>[^}\n]{1,500})\}")
# An address of the same machine. If people made its password, it is usually for a database for
# development. If a machine generated it, it may open the far end of a tunnel.
OF_SAME_MACHINE = "a password in an address of the same machine"
_LOOPBACK = re.compile(r"(?i)@(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?![\w.\-])")
_SCHEME = re.compile(r"(?i)(basic|bearer|token|digest)\s+")
_KEY_TEXT = re.compile(r"[A-Za-z0-9+/]{30,}|Proc-Type:")


class FoundSecret(NamedTuple):
    """The credential in a line, in words.

    Attributes:
        what: The end of a sentence: "the line holds ...".
        sure: Whether the literal also looks like a credential; if not, only its name does.
    """

    what: str
    sure: bool


class FoundCredential(NamedTuple):
    """A credential and its value, which is only compared and never shown."""

    credential: FoundSecret
    value: str


def may_file_hold_credential(text: str, path: str, shapes: CredentialShapeSet) -> bool:
    """Whether a file may contain a credential, so its lines must be checked; most files may not.

    Args:
        shapes: The shapes that `text` may contain.
    """
    return bool(
        shapes.issued
        or shapes.placed
        or path.rpartition("/")[2] in _NETRC | _PGPASS
        or _QUICK.search(text.lower())
        or BEGIN_KEY.search(text)
    )


def list_credentials_in_file(
    lines: Sequence[str], number: int, path: str, shapes: CredentialShapeSet = EVERY
) -> list[FoundCredential]:
    """Lists the credentials in one line of a file with their values, the surest first.

    Args:
        lines: The lines of the file; the lines around show what a line belongs to.
        number: The index of the line, from 0.
        path: The file; its name and suffix decide how it is read.
        shapes: The shapes that the lines may contain.
    """
    return sorted(
        _list_credentials(lines, number, path, shapes), key=lambda found: not found.credential.sure
    )


def _list_credentials(
    lines: Sequence[str], number: int, path: str, shapes: CredentialShapeSet
) -> Iterator[FoundCredential]:
    line = lines[number]
    for shape, (start, end) in find_issued_credentials(line, shapes):
        if not is_sample_of_secret(line[start:end]):
            yield FoundCredential(FoundSecret(shape.what, sure=True), line[start:end])
    key = _find_begin_of_key(lines, number)
    if key is not None:
        yield FoundCredential(FoundSecret("a private key", sure=True), key)
    if len(line) > LONGEST_LINE:
        return
    yield from _list_credentials_by_place(lines, number, path, shapes)
    yield from _list_credentials_by_file(lines, number, path.rpartition("/")[2])
    if _QUICK.search(line.lower()):
        yield from _list_default_values(line)
        yield from _list_credentials_by_name(line, path)


def _find_begin_of_key(lines: Sequence[str], number: int) -> str | None:
    """Finds the first line of a private key that begins here; None for a sentence about keys."""
    begin = BEGIN_KEY.search(lines[number])
    if begin is None:
        return None
    rest = lines[number][begin.end() :][:200]
    if not rest.strip("\\nr\"',; "):
        rest = lines[number + 1] if number + 1 < len(lines) else ""
    found = _KEY_TEXT.search(rest)
    return None if found is None else rest[found.start() :].strip()


def _list_credentials_by_place(
    lines: Sequence[str], number: int, path: str, shapes: CredentialShapeSet
) -> Iterator[FoundCredential]:
    text, offset = lines[number], 0
    if path.lower().endswith(".xml") and number > 0:  # a name, and its value in the next line
        text = f"{lines[number - 1]}\n{text}"
        offset = len(lines[number - 1]) + 1
    for shape, (start, end) in find_placed_credentials(text, shapes):
        if start >= offset:
            # A header without a scheme may as well be an expression.
            header = shape.marks == ("authorization",)
            grade = _grade_placed_credential(
                text[start:end], header=header, address=shape.marks == ("://",)
            )
            address = shape.marks == ("://",) and _LOOPBACK.match(text, end) is not None
            if (
                address
                and grade is SecretLikeness.YES
                and not is_random_like_secret(text[start:end])
            ):
                yield FoundCredential(FoundSecret(OF_SAME_MACHINE, sure=False), text[start:end])
            else:
                yield from _grade_credential(shape.what, grade, text[start:end])


def _grade_placed_credential(value: str, *, header: bool, address: bool) -> SecretLikeness:
    scheme = _SCHEME.match(value)
    if scheme is None:
        return judge_likeness_to_secret(value, made_by_people=not header, may_be_path=not address)
    rest = value[scheme.end() :]
    if scheme[1].lower() == "basic":
        try:
            rest = base64.b64decode(rest, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, ValueError):
            return SecretLikeness.NO
    return judge_likeness_to_secret(rest, made_by_people=True)


def _list_credentials_by_file(
    lines: Sequence[str], number: int, name: str
) -> Iterator[FoundCredential]:
    """Lists the passwords in files whose format has no names for values."""
    line = lines[number]
    found = list_entry_passwords(lines, number)
    if not found and name in _NETRC:
        found = [match.span(1) for match in re.finditer(r"\bpassword\s+(\S+)", line)]
    for start, end in found:
        value = line[start:end]
        yield from _grade_credential(
            "a password", judge_likeness_to_secret(value, made_by_people=True), value
        )
    if number > 0 and name.endswith((".csv", ".tsv")) and _QUICK.search(lines[0].lower()):
        header, values = (_CELL_END.split(row.strip("\r\n")) for row in (lines[0], line))
        for column, value in zip(header, values, strict=False):
            grade = _grade_literal(column.strip(" \"'"), value.strip(" \"'"))
            if grade is SecretLikeness.YES:  # a word is the name of a way to log in
                yield from _grade_credential(f"a value of the column `{column}`", grade, value)
    if name in _PGPASS:
        parts = re.split(r"(?<!\\):", line.strip(), maxsplit=4)
        if len(parts) == 5 and not line.startswith("#"):  # noqa: PLR2004 - host to password
            grade = judge_likeness_to_secret(parts[4], made_by_people=True)
            yield from _grade_credential("a password", grade, parts[4])


def _list_default_values(line: str) -> Iterator[FoundCredential]:
    for pattern in (_DEFAULT, _SHELL_DEFAULT):
        for found in pattern.finditer(line):
            grade = _grade_literal(found["name"], found["value"])
            what = "a credential as the default of an environment variable"
            yield from _grade_credential(what, grade, found["value"])


def _list_credentials_by_name(line: str, path: str) -> Iterator[FoundCredential]:
    suffix = PurePosixPath(path).suffix.lower()
    settings = suffix not in _CODE | _SQL
    is_env = _is_env_file(path)
    comment = "--" if suffix in _SQL else "//" if suffix in _CODE else ";"
    if suffix in _PROSE or line.lstrip().startswith(("#", comment)):
        return
    if "tests/" in f"/{path}" and suffix not in _CODE:
        return  # rows of unit tests have columns of any name
    what = "a credential (by the name of the setting)"
    patterns = [_NAMED, _ARGUMENTS, *([_IN_SQL] if suffix in _SQL else [])]
    for pattern in patterns:
        for found in pattern.finditer(line):
            value = found["value"]
            literal = _parse_literal(value)
            if literal is None and (settings or pattern is _IN_SQL):
                # In a .env file only a blank ends a value without quotes.
                whole = _TO_BLANK.match(line, found.start("value")) if is_env else None
                literal = (value if whole is None else whole[0]).strip("\"'")
            if literal is None:
                continue
            grade = _grade_literal(found["name"], literal)
            if pattern is _ARGUMENTS and grade is SecretLikeness.WORD:
                continue  # `IN ('password', 'magic_link')`
            if (
                suffix in _SQL
                and pattern is _NAMED
                and not _is_credential_option_in_sql(found["name"])
            ):
                # A column with any name, compared with a literal.
                grade = SecretLikeness.WORD if grade is SecretLikeness.YES else SecretLikeness.NO
            yield from _grade_credential(what, grade, literal)


def _is_env_file(path: str) -> bool:
    name = PurePosixPath(path).name
    return name == ".env" or name.startswith(".env.") or name.endswith(".env")


def _is_credential_option_in_sql(name: str) -> bool:
    """Whether a name in SQL is an option: `'password' = 'x'`, `AWS_SECRET_KEY = 'x'`."""
    return name.startswith("'") or name.upper().startswith(_STORES)


def _parse_literal(value: str) -> str | None:
    """Parses a quoted literal; None for an expression, also for one inside quotes."""
    bare = value.lstrip("rbfuRBFU")
    if bare[:1] not in ("'", '"'):
        return None
    if "{" in bare and value[:2].lower().strip("rb\"'") == "f":
        return None
    return bare[1:-1]


def _grade_literal(name: str, literal: str) -> SecretLikeness:
    kind = classify_secret_setting(name)
    if kind is SettingContent.NOTHING:
        return SecretLikeness.NO
    return judge_likeness_to_secret(literal, made_by_people=kind is SettingContent.PASSWORD)


def _grade_credential(what: str, grade: SecretLikeness, value: str) -> Iterator[FoundCredential]:
    if grade is not SecretLikeness.NO:
        yield FoundCredential(FoundSecret(what, sure=grade is SecretLikeness.YES), value.strip())


SECRET = find_rule("hardcoded-secret")
ENV_FILE = find_rule("env-file-tracked")

# At most this many lines with one kind of credential are named; the others are counted.
LINES_NAMED = 3
_TEMPLATE_ENV = re.compile(r"(?i)\.(example|sample|template|dist|tpl)$|^(example|sample)\.")


@on_file(SECRET)
def find_secrets_hardcoded_in_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds credentials in lines that the change adds: one observation for each kind and file."""
    for path in inputs.changed_files or ():
        after = inputs.read_text_after(path) if is_file_read_by_a_rule(path) else None
        if after is None:
            continue
        shapes = CredentialShapeSet.select_for_text(after)
        if not may_file_hold_credential(after, path, shapes):
            continue
        lines = after.splitlines()
        known = set((inputs.read_text_before(path) or "").splitlines())
        found: dict[tuple[FoundSecret, bool], list[int]] = {}
        for number, line in enumerate(lines):
            here = [] if line in known else list_credentials_in_file(lines, number, path, shapes)
            if here:
                credential = here[0].credential
                held = credential.sure and _is_credential_held_by_base(inputs, here)
                found.setdefault((credential, held), []).append(number + 1)
        for (credential, held), numbers in found.items():
            yield _observe_credential(inputs, path, numbers, credential, held=held)


def _is_credential_held_by_base(inputs: RuleInputs, found: Iterable[FoundCredential]) -> bool:
    """Whether the base branch already contains all of these values as credentials.

    The search covers the old side of every changed file, because a value may have moved, or only
    the rest of its line was edited. It also covers the files from which a new line may be copied.
    """
    values = {one.value for one in found if one.credential.sure}
    return values <= inputs.compute_once(_list_credentials_before)


def _list_credentials_before(inputs: RuleInputs) -> frozenset[str]:
    """Lists the base's credentials in changed files and in files that a line may be copied from."""
    paths = (*(inputs.changed_files or ()), *inputs.copied_from)
    texts = ((inputs.read_text_before(path), path) for path in paths)
    return frozenset(
        value
        for text, path in texts
        if text is not None
        for value in _list_credential_values(text, path)
    )


def _list_credential_values(text: str, path: str) -> Iterator[str]:
    shapes = CredentialShapeSet.select_for_text(text)
    if may_file_hold_credential(text, path, shapes):
        lines = text.splitlines()
        for number in range(len(lines)):
            for one in list_credentials_in_file(lines, number, path, shapes):
                yield one.value


def _observe_credential(
    inputs: RuleInputs, path: str, numbers: list[int], credential: FoundSecret, *, held: bool
) -> RuleObservation:
    models = inputs.models_by_file.get(path, [])
    rest = len(numbers) - LINES_NAMED
    named = ", ".join(str(number) for number in numbers[:LINES_NAMED])
    where = f"Line {named} holds" if len(numbers) == 1 else f"Lines {named} hold"
    if rest > 0:
        where = f"Lines {named} and {rest} more hold"
    if held:
        return RuleObservation(
            SECRET,
            f"{where} {credential.what} in plain text. It is not new: the base branch holds the "
            "same value already, and this pull request moves or copies it, or edits its line.",
            "it is revoked at its issuer and read from the environment or a secret store, also on "
            "the base branch",
            severity="medium",
            model=models[0] if models else None,
            path=path,
            subject=("of the base", credential.what),
            line=numbers[0],
        )
    if not credential.sure:
        why = (
            f"{credential.what} (localhost), made by people. It may open more than a database for "
            "development."
            if credential.what == OF_SAME_MACHINE
            else "what may be a credential: the name of a setting says so, and its value is a "
            "plain word."
        )
        return RuleObservation(
            SECRET,
            f"{where} {why}",
            "it is no credential, or it is read from the environment or a secret store",
            severity="medium",
            model=models[0] if models else None,
            path=path,
            subject=("perhaps", credential.what),
            line=numbers[0],
        )
    return RuleObservation(
        SECRET,
        f"{where} {credential.what} in plain text."
        + (" SQLMesh copies the source of a model into its state as well." if models else ""),
        "it is revoked at its issuer and read from the environment or a secret store; removing the "
        "line is not enough, the history keeps it",
        model=models[0] if models else None,
        path=path,
        line=numbers[0],
        subject=(credential.what,),
    )


@on_file(ENV_FILE)
def find_tracked_env_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds .env files that the change adds or edits; SQLMesh reads them automatically."""
    for path in inputs.changed_files or ():
        if not _is_env_file(path):
            continue
        after = inputs.read_text_after(path)
        if after is None or _TEMPLATE_ENV.search(PurePosixPath(path).name):
            continue
        filled = any(
            not line.lstrip().startswith("#")
            and _is_env_line_filled(line.partition("=")[2].strip("\"' "))
            for line in after.splitlines()
            if "=" in line
        )
        yield RuleObservation(
            ENV_FILE,
            "The file is tracked by git"
            + (", with values in it." if filled else "; its values look empty.")
            + " SQLMesh reads .env files automatically, so people keep passwords in them.",
            "the file is out of git and in .gitignore, and what it held is revoked",
            severity=None if filled else "high",
            path=path,
            line=1,
        )
    yield from _find_unignored_env_file(inputs)


def _is_env_line_filled(value: str) -> bool:
    return len(value) >= SHORTEST and not is_stand_in_for_secret(value)


def _find_unignored_env_file(inputs: RuleInputs) -> Iterator[RuleObservation]:
    for path in inputs.changed_files or ():
        if PurePosixPath(path).name != ".gitignore":
            continue
        before = _does_file_ignore_env(inputs.read_text_before(path))
        after = _does_file_ignore_env(inputs.read_text_after(path))
        if before and not after:
            yield RuleObservation(
                ENV_FILE,
                "`.env` is no longer ignored by git, so the next `git add` takes it along.",
                "`.env` is in .gitignore",
                severity="high",
                path=path,
                line=1,
            )


def _does_file_ignore_env(text: str | None) -> bool:
    return any(
        line.strip().lstrip("/").rstrip("*") in {".env", "**/.env", "*.env"}
        for line in (text or "").splitlines()
    )
