"""A project's own pins of SQLMesh, PySpark and others, installed inside the cage.

A requirements file is part of the pull request. Wheels run no code when they are installed; source
packages do. Although even that would run in the cage, only wheels are accepted: so the worker
imports what an index serves under that name and hash. PySpark is only published as source; it is
built if it is one of the releases whose hashes are known here.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from ci_bot.bot.sandbox.deadline import SandboxCancelToken, SandboxDeadline
from ci_bot.bot.sandbox.launch import SandboxLaunch
from ci_bot.bot.sandbox.run_directories import read_file_inside_sandbox, resolve_inside_checkout
from ci_bot.bot.sandbox.supervisor import SandboxWatchOptions, supervise_sandboxed_process
from ci_bot.bot.sandbox.worker_run import make_sandboxed_command, make_start_failure_of_sandbox
from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import (
    NEWEST,
    PYSPARK_VERSIONS_TEXT,
    WAY_OUT,
    describe_unsupported,
    find_excluding_requirement,
    find_source_requirement,
    read_pinned_version,
)
from ci_bot.redaction import Redactor, shorten_redacted

_SCRIPT = Path(__file__).with_name("caged_pip.py")
_LARGEST = 1_000_000
_MOST_FILES = 20
_INCLUDE = re.compile(r"(?:-r|-c|--requirement|--constraint)(?:\s+|=)?(?P<file>\S+)")
_REFUSED_OPTIONS = (
    "-e", "--editable", "--no-binary", "--global-option", "--install-option",
    "--config-settings", "--build-option",
)  # fmt: skip
_SOURCE = re.compile(
    r"(?:^|[\s@])(?:git|hg|svn|bzr)\+|(?:^|@\s*)(?:file:|\.{1,2}/|/)", re.IGNORECASE
)


def check_requirements_before_sandbox(repository: Path, file: str) -> list[str]:
    """Lists the requirements file and all files that it includes, relative to the repository.

    Raises:
        BadInput: One message for everything in them that is not a wheel from an index, and for
            files that are missing or lead out of the repository; or a version of SQLMesh that this
            release does not work with.
    """
    todo, found = [file], dict[str, None]()
    problems: list[str] = []
    versions: list[str] = []
    while todo and len(found) <= _MOST_FILES:
        name = todo.pop(0)
        if name in found:
            continue
        found[name] = None
        content = read_file_inside_sandbox(repository, name, at_most=_LARGEST)
        if content is None:
            problems.append(f"there is no file `{name}`")
            continue
        for line in _join_continued_lines_of_requirements(content.decode("utf-8", "replace")):
            include = _INCLUDE.match(line)
            if include is not None:
                path = Path(name).parent / include["file"]
                resolve_inside_checkout(repository, str(path), what="Requirements file")
                todo.append(os.path.normpath(path))
            elif _is_requirement_refused_in_sandbox(line):
                problems.append(
                    f"`{name}` asks for `{shorten_redacted(line.split('#')[0].strip(), 80)}`"
                )
            elif (bounds := find_excluding_requirement(line)) is not None:
                versions.append(f"`{name}` asks for `{shorten_redacted(bounds, 80)}`")
    if problems:
        raise BadInput(
            f"The requirements cannot be used: {'; '.join(problems)}.",
            hint="Only wheels from a package index are installed: `name==version` lines.",
            reason_code="bad_requirements",
        )
    if versions:
        raise BadInput(
            describe_unsupported(versions[0]), hint=WAY_OUT, reason_code="sqlmesh_version"
        )
    return list(found)


def install_requirements_in_sandbox(
    file: Path,
    *,
    overlay: Path,
    launch: SandboxLaunch,
    redactor: Redactor,
    on_log: Callable[[str], None],
    deadline: SandboxDeadline,
    cancel: SandboxCancelToken,
    clock: Callable[[], float],
    repository: Path | None = None,
) -> SandboxLaunch:
    """Installs the packages of a requirements file; returns `launch` with them in front.

    Args:
        file: In the worker's copy of the checkout.
        overlay: An empty directory of the worker, where the packages go.
            repository: What files that `file` includes must not leave; its own directory by
                default.

        Raises:
            BadInput: The file holds something other than wheels, or pip could not install it.
            RunCancelled: `cancel` was set.
            TimedOut: the deadline passed.
    """
    launch.check_separation(own_uid=os.geteuid())
    root = (repository or file.parent).resolve()
    deadline.check_time("before the requirements were installed")
    files = check_requirements_before_sandbox(root, os.path.relpath(file.resolve(), root))
    with tempfile.TemporaryFile(dir=launch.channel_directory) as unused:
        try:
            ended = supervise_sandboxed_process(
                make_sandboxed_command(
                    launch,
                    [str(overlay), str(file), _find_pyspark_source_for_sandbox(root, files)],
                    script=_SCRIPT,
                ),
                launch=launch,
                watch=SandboxWatchOptions(
                    on_log=on_log,
                    on_progress=lambda _message: None,
                    on_cancel=lambda: None,
                    redactor=redactor,
                    cancel=cancel,
                    clock=clock,
                    deadline_seconds=deadline.seconds_left(),
                ),
                answer_file=unused.fileno(),
            )
        except OSError as error:
            raise make_start_failure_of_sandbox(launch, error) from error
    if ended.stopped == "cancelled":
        raise cancel.make_cancelled_error()
    if ended.stopped == "deadline":
        raise deadline.make_timeout_error(f"while the packages of `{file.name}` were installed")
    if ended.stopped is not None or ended.exit_code != 0:
        raise BadInput(
            f"The packages of `{file.name}` could not be installed.",
            hint="The log above has pip's words. Only wheels are installed, and PySpark, pinned as "
            f"`pyspark=={NEWEST}` to a release of {PYSPARK_VERSIONS_TEXT} that is known here; "
            "another package without a wheel must be part of the image.",
            reason_code="requirements_failed",
        )
    # For the Python processes that Spark starts; the worker itself ignores the variable.
    searched = [launch.variables.get("PYTHONPATH", ""), str(overlay)]
    variables = {
        **launch.variables,
        "PYTHONPATH": os.pathsep.join(path for path in searched if path),
    }
    return replace(launch, overlay=overlay, variables=variables)


def _find_pyspark_source_for_sandbox(repository: Path, files: Sequence[str]) -> str:
    """Finds the source of PySpark that the files pin, by its hash; empty if they pin none."""
    for name in files:
        content = read_file_inside_sandbox(repository, name, at_most=_LARGEST) or b""
        for line in _join_continued_lines_of_requirements(content.decode("utf-8", "replace")):
            version = read_pinned_version(line)
            if version is not None:
                return find_source_requirement(version) or ""
    return ""


def _join_continued_lines_of_requirements(text: str) -> Sequence[str]:
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def _is_requirement_refused_in_sandbox(line: str) -> bool:
    if line.startswith("-"):
        option = re.split(r"[\s=]", line, maxsplit=1)[0]
        return option in _REFUSED_OPTIONS or line.startswith("-e")
    if any(f" {option}" in line for option in _REFUSED_OPTIONS):
        return True
    url = next((word for word in re.split(r"[\s@]+", line) if "://" in word), None)
    if url is not None and not urlsplit(url).path.endswith(".whl"):
        return True
    return bool(_SOURCE.search(line)) or (url is None and line.endswith((".tar.gz", ".zip")))
