"""Credentials in files. What is found is never repeated: the evidence names the place only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ci_bot.contracts.files import is_read
from ci_bot.contracts.rules import rule
from ci_bot.secrets.literals import SHORTEST, stands_for_one
from ci_bot.secrets.shapes import Shapes
from ci_bot.worker.rules.files.credentials import (
    OF_SAME_MACHINE,
    Credential,
    FoundCredential,
    list_credentials,
    may_hold_one,
)
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
        found: dict[tuple[Credential, bool], list[int]] = {}
        for number, line in enumerate(lines):
            here = [] if line in known else list_credentials(lines, number, path, shapes)
            if here:
                credential = here[0].credential
                held = credential.sure and _is_held_by_base(inputs, here)
                found.setdefault((credential, held), []).append(number + 1)
        for (credential, held), numbers in found.items():
            yield _observation(inputs, path, numbers, credential, held=held)


def _is_held_by_base(inputs: RuleInputs, found: Iterable[FoundCredential]) -> bool:
    """Whether the base branch holds all of these values as credentials already.

    It is looked for in the old side of every changed file, since what is moved, or stands in a line
    that is edited, was there; and in the files that a new line may be copied from.
    """
    values = {one.value for one in found if one.credential.sure}
    return values <= inputs.recall_credentials(_list_values)


def _list_values(text: str, path: str) -> Iterator[str]:
    shapes = Shapes.that_may_be_in(text)
    if may_hold_one(text, path, shapes):
        lines = text.splitlines()
        for number in range(len(lines)):
            for one in list_credentials(lines, number, path, shapes):
                yield one.value


def _observation(
    inputs: RuleInputs, path: str, numbers: list[int], credential: Credential, *, held: bool
) -> Observation:
    models = inputs.models_by_file.get(path, [])
    rest = len(numbers) - LINES_NAMED
    named = ", ".join(str(number) for number in numbers[:LINES_NAMED])
    where = f"Line {named} holds" if len(numbers) == 1 else f"Lines {named} hold"
    if rest > 0:
        where = f"Lines {named} and {rest} more hold"
    if held:
        return Observation(
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
        return Observation(
            SECRET,
            f"{where} {why}",
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
