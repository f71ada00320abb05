"""Files that the plan reads and of which the checkout holds a pointer of Git LFS only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_bot.contracts.rules import rule
from ci_bot.worker.project.lfs_pointers import (
    FIX,
    list_files_below,
    list_loaded,
    list_named_in_code,
    list_pointers,
    list_seed_files,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.registry import on_file_and_models

POINTER = rule("lfs-pointer")


@on_file_and_models(POINTER)
def pointers(inputs: RuleInputs) -> Iterator[Observation]:
    """Pointers that the plan takes for data or code, whether or not the pull request changes them.

    What the load has opened is known, and so are the seeds; where nothing could be loaded, it is
    what SQLMesh loads by its kind.
    """
    directories = [inputs.repository / project for project in inputs.projects]
    files = list_files_below(directories)
    seeds = list_seed_files(inputs.after.values())
    given = {*(Path(os.path.normpath(path)) for path in inputs.opened), *seeds}
    # Each file is looked at once: most of what a load opens lies below the project.
    found = list_pointers(files | given)
    below = [path for path in found if path in files]
    read = [path for path in found if path in given]
    if not inputs.loaded:
        read = sorted({*read, *list_loaded(below)})
    if read:
        verb, them = ("is", "it") if len(read) == 1 else ("are", "them")
        yield Observation(
            POINTER,
            f"{names(_relative(read, inputs))} {verb} in Git LFS, and the checkout holds only a "
            f"pointer for {them}. The plan takes the pointer's text for the content, and so would "
            "the tables that it builds and that prod takes over.",
            FIX,
            model=next((seeds[path] for path in read if path in seeds), None),
            path=_relative(read, inputs)[0],
            line=1,
        )
    rest = list_named_in_code([path for path in below if path not in read], directories)
    if rest:
        yield Observation(
            POINTER,
            f"{names(_relative(rest, inputs))} in Git LFS: the checkout holds a pointer only, and "
            "a model or macro names the file. What reads it while a model runs gets the pointer's "
            "text.",
            FIX,
            severity="high",
            path=_relative(rest, inputs)[0],
            line=1,
            subject=("named in code",),
        )


def _relative(paths: Iterable[Path], inputs: RuleInputs) -> list[str]:
    return sorted(
        path.relative_to(inputs.repository).as_posix()
        if path.is_relative_to(inputs.repository)
        else path.as_posix()
        for path in paths
    )
