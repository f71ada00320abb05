"""`ci-bot init --pull-request`: the last step of a setup, with git and GitHub's `gh`."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_bot.bot.cli.setup.next_steps import (
    PULL_REQUEST_BRANCH,
    list_setup_commands_for_pull_request,
)
from ci_bot.errors import BadInput, BotError

_BY_HAND = "Leave out `--pull-request`: the commands are printed then."
# A push of a few files takes seconds; a prompt for a password would wait forever.
_SECONDS = 120


def check_setup_pull_request(root: Path, environ: Mapping[str, str]) -> None:
    """Checks that `open_setup_pull_request` has what it needs, before anything is written.

    Raises:
        BadInput: a program or the remote repository is missing, or the branch exists already.
    """
    for program, what in (("git", "git"), ("gh", "GitHub's command line `gh`")):
        if shutil.which(program, path=environ.get("PATH")) is None:
            raise BadInput(
                f"{what} is not installed, so no pull request can be opened. Nothing was written.",
                hint=_BY_HAND,
                reason_code="bad_input",
            )
    if _run_setup_command_line(["git", "remote", "get-url", "origin"], root, environ).returncode:
        raise BadInput(
            "The repository has no remote `origin`, so no pull request can be opened. Nothing was "
            "written.",
            hint="Add it: `git remote add origin URL`.",
            reason_code="bad_input",
        )
    branch = ["git", "show-ref", "--verify", "--quiet", f"refs/heads/{PULL_REQUEST_BRANCH}"]
    if _run_setup_command_line(branch, root, environ).returncode == 0:
        current = _run_setup_command_line(
            ["git", "branch", "--show-current"], root, environ
        ).stdout.strip()
        raise BadInput(
            f"The branch {PULL_REQUEST_BRANCH} is there already. Nothing was written.",
            # Git deletes no branch that is checked out, and the pull request can have one commit
            # more.
            hint="You are on it: leave out `--pull-request`, then commit and push the files."
            if current == PULL_REQUEST_BRANCH
            else f"Delete it: `git branch --delete --force {PULL_REQUEST_BRANCH}`.",
            reason_code="bad_input",
        )


def open_setup_pull_request(root: Path, paths: Sequence[str], environ: Mapping[str, str]) -> str:
    """Commits only `paths`, on a new branch, and opens a pull request.

    Returns:
        The address of the pull request, or all that `gh` prints if it has none.

    Raises:
        BotError: a command failed. The message names it, and the hint has the remaining commands.
    """
    commands = list_setup_commands_for_pull_request(paths)
    output = ""
    for number, command in enumerate(commands):
        done = _run_setup_command_line(command, root, environ)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = lines[-1] if lines else f"it ended with {done.returncode}"
            left = "\n".join(shlex.join(each) for each in commands[number:])
            raise BotError(
                f"The files are written, and `{shlex.join(command[:2])}` failed: {reason}",
                hint=f"Clear the cause, then:\n{left}",
                reason_code="output",
            )
        output = done.stdout.strip()
    address = re.search(r"https?://\S+", output)
    return address.group() if address else output


def _run_setup_command_line(
    command: Sequence[str], root: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command as the person would, but without prompts: nobody could answer them here."""
    program = shutil.which(command[0], path=environ.get("PATH")) or command[0]
    try:
        return subprocess.run(
            [program, *command[1:]],
            cwd=root,
            env={**environ, "GIT_TERMINAL_PROMPT": "0", "GH_PROMPT_DISABLED": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end after {_SECONDS} s")
