"""Credentials in files. What is found is never repeated: the evidence names the place only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.contracts.files import is_read
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.registry import rule
from ci_bot.worker.rules.secret_forms import FORMS, is_sample
from ci_bot.worker.rules.sight import Sight

SECRET = rule("hardcoded-secret", "A credential is written into a file", "blocker", "project")
ENV_FILE = rule("env-file-tracked", "An .env file is in the repository", "blocker", "project")

_WORDS = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[_.\-]?key|access[_.\-]?key|account[_.\-]?key|"
    r"private[_.\-]?key|client[_.\-]?secret|sas[_.\-]?token|credentials?|auth[_.\-]?key|"
    r"secret[_.\-]?access[_.\-]?key|encryption[_.\-]?key"
)
# Most lines have no such word, and the patterns below look at every place of a line.
_QUICK = re.compile(rf"(?i){_WORDS}")
_NAMED = re.compile(
    rf"""(?ix)
    (?P<name> ["']? [\w.\-/]* (?:{_WORDS}) [\w.\-]* ["']? ) (?: \s*\] )?
    \s* (?: : (?:\s*str)? \s* =? | = | => ) \s*
    (?P<value> [rbfu]? (?: "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) | [^\s,;\#)}}\]]+ )
    """
)
_CALL = re.compile(
    rf"""(?ix) (?P<name> ["'] [\w.\-]* (?:{_WORDS}) [\w.\-]* ["'] ) \s* , \s*
    (?P<value> "[^"\n]+" | '[^'\n]+' ) """
)
# The second part of a name that ends like this is a place or a setting, not the secret itself.
_INNOCENT_NAME = re.compile(
    r"(?i)(_|\.|-)?(file|path|url|uri|endpoint|scope|provider|class|type|ttl|expiry|expires?|"
    r"expiration|lifetime|length|min|max|column|field|name|id|env|var|key_name|algorithm|enabled|"
    r"policy|rotation|required|prompt|count|tokens?_per_\w+|renewal\w*|interval|principal|"
    r"keytab|alias|version)[\"']?$"
)
_PLACEHOLDER = re.compile(
    r"(?i)^(|x{3,}|\*{3,}|\.{3,}|-+|_+|<.*|\[.*\]|%\(.*\)s|%s|none|null|nil|true|false|yes|no|"
    r"todo|tbd|n/?a|redacted|placeholder|change_?me\w*|your[-_ ].*|my[-_ ]?(password|secret|token)|"
    r"(a|the|some)?[-_ ]?(password|secret|token|key)|dummy|example|str|string|int|bytes|any|"
    r"optional.*|required)$"
)
_TEMPLATED = re.compile(r"\{\{|\$\{|\$\(|\$[A-Z_]+\b|@\{|@[A-Z_]+\(|%\{")
_ENV_DEFAULT = re.compile(
    r"""(?ix) (?: env_var | getenv | environ\.get ) \( \s* (?:"[^"]*"|'[^']*') \s* , \s*
    (?: "(?P<a>[^"]*)" | '(?P<b>[^']*)' )"""
)
_CODE = frozenset({".py"})
_SETTINGS = frozenset(
    {".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".json", ".xml"}
)
_SCRIPTS = frozenset({".sh", ".env", ".sql", ".jinja"})
MAX_LINE = 2_000
MIN_SECRET = 4
_TEMPLATE_ENV = re.compile(r"(?i)\.(example|sample|template|dist|tpl)$|^(example|sample)\.")


def hard_coded(inputs: RuleInputs) -> Iterator[Sight]:
    """Credentials in lines that the change adds."""
    for path in inputs.changed_files or ():
        after = inputs.text_after(path) if is_read(path) else None
        if after is None:
            continue
        known = set((inputs.text_before(path) or "").splitlines())
        told: set[str] = set()
        for number, line in enumerate(after.splitlines(), start=1):
            if line in known or len(line) > MAX_LINE:
                continue
            what = secret_in(line, path)
            if what is not None and what not in told:
                told.add(what)
                yield _sight(inputs, path, number, what)


def _sight(inputs: RuleInputs, path: str, line: int, what: str) -> Sight:
    models = inputs.models_by_file.get(path, [])
    return Sight(
        SECRET,
        f"Line {line} holds {what} in plain text."
        + (" SQLMesh copies the source of a model into its state as well." if models else ""),
        "it is revoked at its issuer and read from the environment or a secret store; removing the "
        "line is not enough, the history keeps it",
        model=models[0] if models else None,
        path=path,
        line=line,
    )


def secret_in(line: str, path: str) -> str | None:
    """What kind of credential a line holds, in words and without its value; None for none."""
    for what, form in FORMS:
        found = form.search(line)
        if found and not is_sample(found.group(0)):
            return what
    default = _ENV_DEFAULT.search(line)
    if default is not None:
        value = default.group("a") or default.group("b") or ""
        name = line.lower()
        if re.search(_WORDS, name) and not _harmless(value) and len(value) >= MIN_SECRET:
            return "a credential as the default of an environment variable"
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in _CODE | _SETTINGS | _SCRIPTS and not PurePosixPath(path).name.startswith(
        ".env"
    ):
        return None
    if "tests/" in f"/{path}" and suffix in _SETTINGS | _SCRIPTS:
        return None  # rows of unit tests have columns of any name
    return _by_name(line, suffix)


def _by_name(line: str, suffix: str) -> str | None:
    if line.lstrip().startswith(("#", "--", "//")) or not _QUICK.search(line):
        return None
    for pattern in (_NAMED, _CALL):
        for found in pattern.finditer(line):
            value = found.group("value")
            quoted = value[:1] in "\"'" or value[1:2] in "\"'"
            # In code and SQL an unquoted value is an expression, not a literal.
            if not quoted and suffix in _CODE | {".sql", ".jinja", ".json"}:
                continue
            if value[:1] in "fF" and quoted and "{" in value:
                continue
            name = found.groupdict().get("name") or ""
            if name and _INNOCENT_NAME.search(name):
                continue
            bare = value.lstrip("rbfuRBFU").strip("\"'") if quoted else value.strip("\"'")
            if _harmless(bare) or not _is_dense(bare):
                continue
            return "a credential (by the name of the setting)"
    return None


def _harmless(value: str) -> bool:
    return bool(_PLACEHOLDER.match(value.strip()) or _TEMPLATED.search(value)) or (
        len(value) < MIN_SECRET
    )


def _is_dense(value: str) -> bool:
    """Whether a text looks like a credential and not like a sentence or a path."""
    if " " in value.strip() and len(value.split()) > 2:  # noqa: PLR2004 - a sentence
        return False
    return not value.startswith(("/", "./", "os.", "env.", "self.", "config."))


def env_file(inputs: RuleInputs) -> Iterator[Sight]:
    """An .env file that the change adds or edits; SQLMesh reads it by itself."""
    for path in inputs.changed_files or ():
        name = PurePosixPath(path).name
        if not (name == ".env" or name.startswith(".env.") or name.endswith(".env")):
            continue
        after = inputs.text_after(path)
        if after is None or _TEMPLATE_ENV.search(name):
            continue
        filled = any(
            not line.lstrip().startswith("#")
            and not _harmless(line.partition("=")[2].strip("\"' "))
            for line in after.splitlines()
            if "=" in line
        )
        yield Sight(
            ENV_FILE,
            "The file is tracked by git"
            + (", with values in it." if filled else "; its values look empty.")
            + " SQLMesh reads .env files by itself, so people keep passwords in them.",
            "the file is out of git and in .gitignore, and what it held is revoked",
            severity=None if filled else "high",
            path=path,
            line=1,
        )
    yield from _unignored(inputs)


def _unignored(inputs: RuleInputs) -> Iterator[Sight]:
    for path in inputs.changed_files or ():
        if PurePosixPath(path).name != ".gitignore":
            continue
        before, after = (
            _ignores_env(inputs.text_before(path)),
            _ignores_env(inputs.text_after(path)),
        )
        if before and not after:
            yield Sight(
                ENV_FILE,
                "`.env` is no longer ignored by git, so the next `git add` takes it along.",
                "`.env` is in .gitignore",
                severity="high",
                path=path,
                line=1,
            )


def _ignores_env(text: str | None) -> bool:
    return any(
        line.strip().lstrip("/").rstrip("*") in {".env", "**/.env", "*.env"}
        for line in (text or "").splitlines()
    )
