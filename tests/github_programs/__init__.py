"""Stand-ins of `gh`, GitHub's own program, for workflows that are run without GitHub.

They are whole programs, because a container starts them without this package.
"""

from __future__ import annotations

import shutil
from pathlib import Path

RECORDER = Path(__file__).with_name("recorder.py")
REPORTS = Path(__file__).with_name("reports.py")


def install(program: Path, directory: Path) -> Path:
    """Puts one of the programs into a directory, made where absent, as `gh`; gives its path."""
    directory.mkdir(exist_ok=True)
    gh = Path(shutil.copy(program, directory / "gh"))
    gh.chmod(0o755)
    return gh
