"""The scan and the trace in the cage: another user, a copy of the checkout, links to the original."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.host import ContainerUser, Machine, make_process_machine
from tests.projects.repository import Repository, write_repository
from tests.security.test_hostile_probe import WORKER, ground, interpreter  # noqa: F401 - a fixture
from tests.worker import Client

# Put together here, so that no scanner takes this file for one with a key in it.
KEY = "sk_live_" + "4f9c2b7d1e8a6053c1d2"
MACRO = """\
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from sqlmesh import macro
from shared import helper


@macro()
def rate(evaluator):
    return 1
"""


@pytest.fixture
def repository(ground: Path) -> Repository:  # noqa: F811
    made = write_repository(
        ground / "checkout",
        {
            "project/macros/__init__.py": "",
            "project/macros/rate.py": MACRO,
            "shared/__init__.py": "",
            "shared/helper.py": "X = 1\n",
            "dags/daily.py": "x = 1\n",
            "notes/large.json": json.dumps(["x" * 100] * 1_000, indent=0),
        },
    )
    made.commit(
        {
            "project/models/revenue.sql": made.read("project/models/revenue.sql").replace(
                "SUM(o.amount)", "SUM(o.amount * @rate())"
            )
        }
    )
    return made


@pytest.fixture
def around(ground: Path) -> Machine:  # noqa: F811
    (ground / "tmp").mkdir()
    user = ContainerUser(uid=WORKER[0], gid=WORKER[1], java_home="/nonexistent")
    return replace(
        make_process_machine(),
        worker_user=user,
        python=interpreter(ground),
        temporary=ground / "tmp",
    )


def test_cage__files_that_are_only_linked_are_read_too(
    repository: Repository, around: Machine
) -> None:
    """Large files of the copy are links to the original; a key in one is not silent."""
    large = json.dumps([*["x" * 100] * 1_000, KEY], indent=0)
    commits = repository.change(
        {
            "notes/large.json": large,
            "shared/helper.py": "X = 2\n",
            "dags/daily.py": "x = 2\n",
            "project/models/revenue.sql": "MODEL (name shop.revenue);\nSELECT FROM (\n",
        }
    )
    for directory, names, files in os.walk(repository.root):
        for name in [*names, *files]:
            (Path(directory) / name).chmod(0o755, follow_symlinks=True)
    client = Client(repository.root, projects=("project",), around=around)

    report = client.review("pr_1", commits=commits, baseline="base-branch")

    assert report.failure is not None
    assert "revenue.sql" in report.failure.message
    leaked = [risk.path for risk in report.risks if risk.rule == "hardcoded-secret"]
    assert leaked == ["notes/large.json"]
    assert client.loaded == {"shared/helper.py", "project/models/revenue.sql"}
