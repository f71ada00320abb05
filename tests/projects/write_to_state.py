"""Opens a project as a review does, tries to write into its state, and prints what it was told."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ci_bot.worker import sqlmesh_compat
from tests.projects.opened import opened


def main(project: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch, opened(Path(scratch), project) as found:
        try:
            adapter = sqlmesh_compat.get_sqlmesh_state_adapter(found.context)
            adapter.execute("DELETE FROM sqlmesh._environments")
        except Exception as error:
            print(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
