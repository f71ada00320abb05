"""`ci-bot init`: reads the repository, plans its files, writes them, and prints what is left."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ci_bot.bot.cli.setup.compare_files import (
    ComparedSetupFile,
    SetupSignature,
    compare_setup_files,
    is_setup_file_unedited,
    read_signature_of_setup_file,
)
from ci_bot.bot.cli.setup.github_settings import SetupLevel
from ci_bot.bot.cli.setup.next_steps import (
    RemainingSetupStep,
    list_notes_after_setup,
    list_remaining_setup_steps,
)
from ci_bot.bot.cli.setup.open_pull_request import check_setup_pull_request, open_setup_pull_request
from ci_bot.bot.cli.setup.plan_files import (
    PLAIN,
    PlannedSetupFile,
    SetupActionRelease,
    SetupRequest,
    find_action_release,
    list_names_of_setup_workflows,
    parse_action_release,
    plan_setup_files,
    read_action_release_of_setup_file,
)
from ci_bot.bot.cli.setup.read_repository import (
    find_projects_for_setup,
    find_repository_root_for_setup,
    is_sqlmesh_project,
    read_repository_for_setup,
)
from ci_bot.bot.cli.setup.repository_facts import WORKFLOWS
from ci_bot.bot.report import CANNOT_WRITE, TextPage, make_text_page
from ci_bot.errors import EXIT_DONE, BadInput, BotError, RequestRefused
from ci_bot.host import Machine
from ci_bot.resources import find_resource

# A sentence with more of them would be too long.
_MOST_NAMED = 6
_DISTRIBUTION = "sqlmesh-plan-review"
_WORDS = {
    "new": ("new", "green"),
    "changed": ("changed", "yellow"),
    "moved": ("pins moved", "yellow"),
    "edited": ("edited", "yellow"),
    "same": ("as it is", None),
    "kept": ("yours", None),
}


@dataclass(frozen=True)
class SetupOptions:
    """The options of the command.

    Attributes:
        projects: Directories, as they were given; if it is empty, the command searches for them.
        level: None means the level of an earlier run, at first `review`.
        action: The release to name, as `owner/name@commit`; None means the one that is installed.
        output: A directory that is used instead of the repository's root.
        pull_request: Whether to open a pull request with what was written.
    """

    projects: tuple[str, ...] = ()
    level: SetupLevel | None = None
    gateway: str | None = None
    action: str | None = None
    upgrade: bool = False
    dry_run: bool = False
    output: str | None = None
    pull_request: bool = False


def set_up_repository(
    machine: Machine,
    options: SetupOptions,
    choose: Callable[[Sequence[str]], Sequence[str]] | None = None,
) -> int:
    """Writes the workflows of a level, and prints what is left to do; returns the exit code.

    Args:
        choose: Lets a person choose among several projects; None if nobody can answer.

    Raises:
        BadInput: there is no repository or no project, nothing can be written there, or no pull
            request can be opened.
        BotError: the files are written, but the pull request could not be opened.
        RequestRefused: somebody else's file has the name of one of ours.
    """
    root = find_repository_root_for_setup(machine.directory)
    _refuse_setup_written_elsewhere(options)
    target = machine.directory / options.output if options.output else root
    before = _read_earlier_options(target)
    projects = _choose_projects_to_set_up(machine.directory, root, options.projects, before, choose)
    level = options.level or (before.level if before else "review")
    gateway = options.gateway or (before.gateway if before else None)
    repository = read_repository_for_setup(root, projects)
    _check_names_fit_workflow((*projects, repository.branch, *([gateway] if gateway else [])))
    _check_given_gateway(gateway, [each.configuration.gateways for each in repository.projects])
    request = SetupRequest(
        repository=repository,
        level=level,
        release=_choose_release(options, target),
        gateway=gateway,
    )
    planned = plan_setup_files(request, load_setup_template)
    compared = compare_setup_files(
        planned,
        _read_existing_setup_files(target, planned),
        SetupSignature(level, projects, gateway),
        upgrade=options.upgrade,
    )
    _refuse_foreign_setup_files(compared)
    written = [file.planned.path for file in compared if file.text is not None]
    opens_pull_request = options.pull_request and bool(written)
    if opens_pull_request:
        _refuse_setup_placeholder(request.release)
        check_setup_pull_request(root, machine.environ)
    if not options.dry_run:
        _write_setup_files(target, compared)
    print(
        _render_outcome(machine, request, compared, written, options, target),
        file=machine.out,
        end="",
        flush=True,
    )
    if opens_pull_request:
        address = open_setup_pull_request(root, written, machine.environ)
        print(f"\nPull request: {address}", file=machine.out, flush=True)
    return EXIT_DONE


def _refuse_setup_written_elsewhere(options: SetupOptions) -> None:
    """Refuses options that write elsewhere: a pull request takes the files of this repository."""
    if options.pull_request and (options.dry_run or options.output):
        other = "--dry-run" if options.dry_run else "--output"
        raise BadInput(
            f"`--pull-request` opens one with the files of this repository, and `{other}` writes "
            "none there.",
            hint="Leave one of them out.",
            reason_code="bad_input",
        )


def _refuse_setup_placeholder(release: SetupActionRelease) -> None:
    """Refuses the placeholder: no run can begin with it, so the pull request gets no comment."""
    if not release.is_released:
        raise BadInput(
            "This ci-bot was not installed from a release, so no run of the pull request could "
            "begin. Nothing was written.",
            hint="Name the release with `--action OWNER/NAME@COMMIT`, or install ci-bot from its "
            "repository with pip and git.",
            reason_code="bad_input",
        )


def load_setup_template(name: str) -> str | None:
    """Returns the text of a template or another file that `ci-bot init` needs; None if missing."""
    for directory in ("workflows", "setup"):
        file = find_resource("templates") / directory / name
        if name and file.is_file():
            return file.read_text("utf-8")
    return None


def _choose_projects_to_set_up(
    directory: Path,
    root: Path,
    given: tuple[str, ...],
    before: SetupSignature | None,
    choose: Callable[[Sequence[str]], Sequence[str]] | None,
) -> tuple[str, ...]:
    """Chooses the projects to set up, relative to the repository.

    Raises:
        BadInput: there is no project, a given one is not usable, or nobody can choose one.
        RequestRefused: the workflows of an earlier run are of other projects.
    """
    if given:
        named = tuple(dict.fromkeys(_name_project(directory, root, each) for each in given))
        _refuse_other_projects(named, before)
        return named
    if before is not None and all(is_sqlmesh_project(root / each) for each in before.projects):
        return before.projects
    found = find_projects_for_setup(root)
    if not found:
        raise BadInput(
            f"There is no SQLMesh project in {root}: no directory has a configuration of SQLMesh.",
            hint="Name its directory with `--project PATH`, or make one with `sqlmesh init`.",
            reason_code="no_project",
        )
    here = directory.relative_to(root).as_posix()
    if here in found and here != ".":
        return (here,)
    if len(found) == 1:
        return (found[0],)
    if choose is not None:
        return tuple(choose(found))
    options = " or ".join(f"`--project {each}`" for each in found[:_MOST_NAMED])
    if len(found) > _MOST_NAMED:
        options += f" or another one of {len(found)}"
    raise BadInput(
        f"There are {len(found)} SQLMesh projects here, and their workflows differ.",
        hint=f"Say which one: {options}. Several that share one state are named together.",
        reason_code="several_projects",
    )


def _refuse_other_projects(named: Sequence[str], before: SetupSignature | None) -> None:
    """Refuses to replace the workflows of some projects by those of others silently."""
    if before is None or set(before.projects) <= set(named):
        return
    both = " ".join(f"--project {each}" for each in dict.fromkeys((*before.projects, *named)))
    raise RequestRefused(
        f"The workflows here are of {', '.join(before.projects)}, and would not be any more.",
        hint=f"For projects that share one state: `ci-bot init {both}`. To replace them, delete "
        "the workflows first.",
        reason_code="several_projects",
    )


def _choose_release(options: SetupOptions, target: Path) -> SetupActionRelease:
    """Chooses the release to name: that of the existing files, unless they are upgraded."""
    there = _read_repository_file(target / WORKFLOWS / "review.yml") or ""
    kept = None if options.upgrade else read_action_release_of_setup_file(there)
    if kept is not None:
        return kept
    if options.action:
        return parse_action_release(options.action)
    return find_action_release(_read_direct_url())


def _name_project(directory: Path, root: Path, given: str) -> str:
    place = Path(os.path.normpath(directory / given))
    if not place.is_relative_to(root):
        raise BadInput(
            f"{given} is outside of the repository {root}.",
            hint="A workflow reaches only what is checked out.",
            reason_code="bad_path",
        )
    if not place.is_dir():
        raise BadInput(
            f"`{given}` does not exist.",
            hint="Give `--project` a directory that holds a configuration of SQLMesh.",
            reason_code="no_project",
        )
    if not is_sqlmesh_project(place):
        inside = [
            each for each in find_projects_for_setup(root) if (root / each).is_relative_to(place)
        ]
        there = f"Below it there is {', '.join(inside)}. " if inside else ""
        raise BadInput(
            f"{given} has no configuration of SQLMesh.",
            hint=f"{there}A project has a config.yaml, sqlmesh.yaml or config.py.",
            reason_code="no_project",
        )
    return place.relative_to(root).as_posix()


def _check_names_fit_workflow(names: Iterable[str]) -> None:
    """Refuses names that a workflow or a shell could read as more than a name."""
    for name in names:
        if not PLAIN.fullmatch(name):
            raise BadInput(
                f"`{name!r}` cannot be written into a workflow safely.",
                hint="Names of directories, branches and gateways may have letters, digits and "
                "`_ . - /` here. Rename it; reviews on a laptop take it as it is.",
                reason_code="bad_path",
            )


def _check_given_gateway(gateway: str | None, known: Sequence[Sequence[str]]) -> None:
    if gateway is None or all(gateway in names or not names for names in known):
        return
    names = dict.fromkeys(name for each in known for name in each)
    raise BadInput(
        f"The configuration has no gateway {gateway}.",
        hint=f"It has {', '.join(names)}.",
        reason_code="bad_input",
    )


def _read_direct_url() -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.distribution(_DISTRIBUTION).read_text("direct_url.json")
    return None


def _read_earlier_options(target: Path) -> SetupSignature | None:
    """Reads the options of an earlier run from the workflows that it has left.

    A file that people have edited keeps the line of the run that wrote it. So an unedited file is
    read first: it has the options of the last run.
    """
    found = [
        _read_repository_file(target / WORKFLOWS / name) or ""
        for name in list_names_of_setup_workflows()
    ]
    made = (
        read_signature_of_setup_file(text)
        for text in sorted(found, key=is_setup_file_unedited, reverse=True)
    )
    return next((made_with for made_with in made if made_with is not None), None)


def _read_existing_setup_files(target: Path, planned: Iterable[PlannedSetupFile]) -> dict[str, str]:
    texts = {file.path: _read_repository_file(target / file.path) for file in planned}
    return {path: text for path, text in texts.items() if text is not None}


def _read_repository_file(path: Path) -> str | None:
    """Reads a file's text; None if it does not exist.

    Raises:
        BadInput: something else is there, or it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror}.",
            hint="Move it away, or name another directory with `--output`.",
            reason_code="output",
        ) from error


def _refuse_foreign_setup_files(compared: Iterable[ComparedSetupFile]) -> None:
    foreign = [file.planned.path for file in compared if file.status == "foreign"]
    if foreign:
        raise RequestRefused(
            f"{', '.join(foreign)} {'is' if len(foreign) == 1 else 'are'} there already, and "
            "`ci-bot init` has not made it. Nothing was written.",
            hint="Rename it, or write the files elsewhere with `--output DIR` and compare them.",
            reason_code="foreign_file",
        )


def _write_setup_files(target: Path, compared: Sequence[ComparedSetupFile]) -> None:
    """Writes all files or none: first each beside its place, then all are renamed.

    Raises:
        BadInput: a file cannot be written.
        BotError: the disk failed between two files.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        for file in compared:
            if file.text is not None:
                path = target / file.planned.path
                path.parent.mkdir(parents=True, exist_ok=True)
                handle, name = tempfile.mkstemp(prefix=".ci-bot-", dir=path.parent)
                waiting.append((Path(name), path))
                with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as opened:
                    opened.write(file.text)
                Path(name).chmod(0o644)
    except OSError as error:
        _remove_waiting_workflow_files(waiting)
        raise BadInput(
            f"{CANNOT_WRITE} {target}: {error.strerror}. Nothing was written.",
            hint="Make it writable for this account, or name another directory with `--output`.",
            reason_code="output",
        ) from error
    try:
        for part, path in waiting:
            part.replace(path)
    except OSError as error:
        _remove_waiting_workflow_files(waiting)
        raise BotError(
            f"Not all files could be written to {target}: {error.strerror}.",
            hint="Run the command again: it writes what is missing.",
            reason_code="output",
        ) from error


def _remove_waiting_workflow_files(waiting: Iterable[tuple[Path, Path]]) -> None:
    """Removes the files that were not yet renamed to their place."""
    for part, _ in waiting:
        part.unlink(missing_ok=True)


def _render_outcome(
    machine: Machine,
    request: SetupRequest,
    compared: Sequence[ComparedSetupFile],
    written: Sequence[str],
    options: SetupOptions,
    target: Path,
) -> str:
    page = make_text_page(machine)
    page.add_title(_make_title(request, options, written), "green")
    for file in compared:
        word, color = _WORDS[file.status]
        page.add_item(f"{file.planned.path}: {file.planned.why}", mark=word.ljust(10), color=color)
    _add_diffs(page, compared)
    notes = [
        *list_notes_after_setup(request),
        *_list_left_workflows(request, target),
    ]
    if notes:
        page.add_heading("To know")
        for note in notes:
            page.add_item(note)
    text = page.render_text()
    # A run that changes nothing has printed the steps before.
    if not written:
        edited = any(file.status == "edited" for file in compared)
        why = "what you edited stays" if edited else "the files are as this command makes them"
        opened = " No pull request was opened." if options.pull_request else ""
        return f"{text}\nNothing is to be written: {why}.{opened}\n"
    if options.dry_run:
        return f"{text}\nNothing was written. Without `--dry-run` these files are.\n"
    # Files in another directory have to be copied before they can be committed.
    committed = [] if options.output or options.pull_request else written
    return f"{text}\nWhat is left to do:\n" + _render_setup_steps(
        machine, list_remaining_setup_steps(request, committed, load_setup_template)
    )


def _make_title(request: SetupRequest, options: SetupOptions, written: Sequence[str]) -> str:
    paths = [each.path for each in request.repository.projects]
    projects = "this repository" if paths == ["."] else ", ".join(paths)
    verb = "would be written" if options.dry_run else "written"
    files = "1 file" if len(written) == 1 else f"{len(written)} files"
    return f"Level {request.level} for {projects} · {files} {verb}"


def _add_diffs(page: TextPage, compared: Iterable[ComparedSetupFile]) -> None:
    for file in compared:
        if file.diff:
            page.add_heading(
                f"{file.planned.path} was edited, so it stays. It would be written so:"
            )
            page.add_block(file.diff.rstrip("\n"), diff=True)


def _list_left_workflows(request: SetupRequest, target: Path) -> Iterable[str]:
    """Yields notes on workflows of a higher level that an earlier run has left."""
    mine = list_names_of_setup_workflows(request.level)
    for name in list_names_of_setup_workflows():
        text = None if name in mine else _read_repository_file(target / WORKFLOWS / name)
        if text is not None and read_signature_of_setup_file(text) is not None:
            yield (
                f"{WORKFLOWS}/{name} is of a higher level than {request.level} and is left as it "
                "is. Delete it if you do not want it."
            )


def _render_setup_steps(machine: Machine, steps: Sequence[RemainingSetupStep]) -> str:
    """Renders the steps; commands are at the margin, so that they can be pasted."""
    parts = []
    for number, step in enumerate(steps, start=1):
        page = make_text_page(machine)
        page.add_heading(f"{number}. {step.title}")
        page.add_paragraph(step.why)
        commands = "".join(f"{line}\n" for line in step.commands)
        parts.append(
            f"\n{page.render_text()}\n{commands}" if commands else f"\n{page.render_text()}"
        )
    return "".join(parts)
