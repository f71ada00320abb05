"""Credentials in files. What is found is never repeated: the evidence names the place only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.contracts.files import is_read
from ci_bot.contracts.rules import rule
from ci_bot.secrets.literals import SHORTEST, stands_for_one
from ci_bot.secrets.shapes import Shapes
from ci_bot.worker.rules.files.credentials import Credential, credential_in, may_hold_one
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.registry import on_file

SECRET = rule("hardcoded-secret")
ENV_FILE = rule("env-file-tracked")

# The lines of one kind of credential that are named; the others are counted.
LINES_NAMED = 3
_TEMPLATE_ENV = re.compile(r"(?i)\.(example|sample|template|dist|tpl)$|^(example|sample)\.")


@on_file(SECRET)
def hard_coded(inputs: RuleInputs) -> Iterator[Observation]:
    """Credentials in lines that the change adds: one observation for each kind and file."""
    for path in inputs.changed_files or ():
        after = inputs.text_after(path) if is_read(path) else None
        if after is None:
            continue
        shapes = Shapes.that_may_be_in(after)
        if not may_hold_one(after, path, shapes):
            continue
        lines = after.splitlines()
        known = set((inputs.text_before(path) or "").splitlines())
        found: dict[Credential, list[int]] = {}
        for number, line in enumerate(lines):
            credential = None
            if line not in known:
                credential = credential_in(lines, number, path, shapes)
            if credential is not None:
                found.setdefault(credential, []).append(number + 1)
        for credential, numbers in found.items():
            yield _observation(inputs, path, numbers, credential)


def _observation(
    inputs: RuleInputs, path: str, numbers: list[int], credential: Credential
) -> Observation:
    models = inputs.models_by_file.get(path, [])
    rest = len(numbers) - LINES_NAMED
    named = ", ".join(str(number) for number in numbers[:LINES_NAMED])
    where = f"Line {named} holds" if len(numbers) == 1 else f"Lines {named} hold"
    if rest > 0:
        where = f"Lines {named} and {rest} more hold"
    if not credential.sure:
        return Observation(
            SECRET,
            f"{where} what may be a credential: the name of a setting says so, and its value is a "
            "plain word.",
            "it is no credential, or it is read from the environment or a secret store",
            severity="medium",
            model=models[0] if models else None,
            path=path,
            subject=("perhaps", credential.what),
            line=numbers[0],
        )
    return Observation(
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
def env_file(inputs: RuleInputs) -> Iterator[Observation]:
    """An .env file that the change adds or edits; SQLMesh reads it by itself."""
    for path in inputs.changed_files or ():
        name = PurePosixPath(path).name
        if not (name == ".env" or name.startswith(".env.") or name.endswith(".env")):
            continue
        after = inputs.text_after(path)
        if after is None or _TEMPLATE_ENV.search(name):
            continue
        filled = any(
            not line.lstrip().startswith("#") and _is_filled(line.partition("=")[2].strip("\"' "))
            for line in after.splitlines()
            if "=" in line
        )
        yield Observation(
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


def _is_filled(value: str) -> bool:
    return len(value) >= SHORTEST and not stands_for_one(value)


def _unignored(inputs: RuleInputs) -> Iterator[Observation]:
    for path in inputs.changed_files or ():
        if PurePosixPath(path).name != ".gitignore":
            continue
        before, after = (
            _ignores_env(inputs.text_before(path)),
            _ignores_env(inputs.text_after(path)),
        )
        if before and not after:
            yield Observation(
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
