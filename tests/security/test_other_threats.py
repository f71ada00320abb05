"""Rows of the threat list that no other level has a place for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot.bot.actions.inputs import read_action_settings
from tests.conftest import REPOSITORY
from tests.security.probe_job import SECRET

TOKEN_SHAPES = re.compile(r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50,}")
UNSAFE = "import subprocess\n\n\ndef run(name):\n    subprocess.call(f'ls {name}', shell=True)\n"


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a runner sets for an event that asks for nothing, with a title that is not ASCII."""
    event = home / "event.json"
    payload = {"action": "labeled", "label": {"name": "größe ∑"}, "sender": {"login": "ü"}}
    event.write_text(json.dumps(payload), "utf-8")
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "CI_BOT_GITHUB_TOKEN": SECRET,
        "CI_BOT_ALLOW_UNCAGED": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "größe",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "acme/warehouse",
        "GITHUB_WORKSPACE": str(home),
        **more,
    }


def bot(home: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "ci_bot", "run"],
        env=environment(home, **more),
        cwd=home,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_settings__show_no_token(tmp_path: Path) -> None:
    settings = read_action_settings(environment(tmp_path))
    assert settings.inputs.github_token == SECRET
    assert SECRET not in f"{settings!r} {settings}"


def test_crash__shows_no_token(tmp_path: Path) -> None:
    # The runner's file is a directory: nothing that a bot could foresee.
    ended = bot(tmp_path, GITHUB_OUTPUT=str(tmp_path), GITHUB_EVENT_PATH=str(tmp_path / "absent"))
    assert ended.returncode != 0
    shown = [line for line in ended.stdout.splitlines() if not line.startswith(b"::add-mask::")]
    assert SECRET.encode() not in b"\n".join(shown) + ended.stderr


def test_repository__holds_nothing_that_looks_like_a_token() -> None:
    # Tests use tokens of their own making: too short, or put together while they run.
    done = subprocess.run(
        ["/usr/bin/env", "git", "ls-files"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    recorded = [name for name in done.stdout.splitlines() if "cassette" in name]
    shipped = [name for name in done.stdout.splitlines() if not name.startswith("tests/")]
    for name in recorded + shipped:
        path = REPOSITORY / name
        if path.is_file():
            assert not TOKEN_SHAPES.search(path.read_text("utf-8", "replace")), name


@pytest.mark.parametrize("locale", ["C", "POSIX", "no_such.locale"])
def test_locale__of_the_machine_changes_nothing(tmp_path: Path, locale: str) -> None:
    ended = bot(tmp_path, LC_ALL=locale, LANG=locale)
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"\n::notice::" in ended.stdout
    assert b"Traceback" not in ended.stderr


def bandit(path: Path) -> int:
    return subprocess.run(
        [sys.executable, "-m", "bandit", "-q", "-r", "--skip", "B404,B603", str(path)],
        capture_output=True,
        check=False,
    ).returncode


@pytest.mark.night
def test_bandit__finds_nothing_in_the_package() -> None:
    assert bandit(REPOSITORY / "ci_bot") == 0


def test_bandit__notices_a_shell(tmp_path: Path) -> None:
    (tmp_path / "unsafe.py").write_text(UNSAFE, "utf-8")
    assert bandit(tmp_path) == 1


def test_security_page__says_what_the_cage_cannot_stop() -> None:
    page = (REPOSITORY / "docs" / "threat-model.md").read_text("utf-8")
    for words in ("network", "same repository", "fork", "least"):
        assert words in page.lower() or words.replace("same ", "") in page.lower()
    paragraph = next(line for line in page.splitlines() if "**The network.**" in line)
    assert "exfiltrate" in paragraph
