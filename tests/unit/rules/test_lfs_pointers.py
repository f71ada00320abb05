"""A pointer of Git LFS is no data: what the plan reads must not be one, whoever has changed it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from ci_bot.protocol.files import is_lfs_pointer
from ci_bot.worker.project.loading import list_project_files_below
from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.world import seen

# As the specification writes one, of a file of 12,345 bytes.
POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n"
)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, opened: tuple[str, ...] = (), **more: Any) -> list[tuple[str, str | None]]:
    inputs = RuleInputs(
        before={},
        after={},
        repository=root,
        projects=("project",),
        opened=frozenset(str(root / path) for path in opened),
        changed_files=(),
        **more,
    )
    return [(item.severity, item.path) for item in seen(inputs, "lfs-pointer")]


def test_pointer__by_the_specification() -> None:
    assert is_lfs_pointer(POINTER.encode())
    assert is_lfs_pointer(POINTER.replace("git-lfs.github", "hawser.github").encode())
    assert not is_lfs_pointer(f"-- {POINTER}".encode())
    assert not is_lfs_pointer(f"{POINTER}{'x' * 1024}".encode()), "pointers are smaller"
    assert not is_lfs_pointer(b"version https://git-lfs.github.com/\n")
    assert not is_lfs_pointer(b"")


def test_pointer__that_the_load_opened__blocks(tmp_path: Path) -> None:
    write(tmp_path, {"project/external_models.yaml": POINTER, "data/rates.csv": POINTER})
    opened = ("project/external_models.yaml", "data/rates.csv")
    assert found(tmp_path, opened) == [("blocker", "data/rates.csv")]


def test_pointer__that_only_code_names__is_high(tmp_path: Path) -> None:
    code = "import pandas as pd\nrates = pd.read_parquet('data/rates.parquet')\n"
    write(tmp_path, {"project/data/rates.parquet": POINTER, "project/models/m.py": code})
    assert found(tmp_path, ("project/models/m.py",)) == [("high", "project/data/rates.parquet")]


@pytest.mark.parametrize("name", ["project/docs/lineage.png", "project/data/old.parquet", "b.csv"])
def test_pointer__that_nobody_reads__is_quiet(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: POINTER, "project/models/m.sql": "SELECT 1", "README.md": name})
    assert found(tmp_path, ("project/models/m.sql",)) == []


def test_file__that_speaks_of_pointers__is_quiet(tmp_path: Path) -> None:
    texts = {"project/models/m.sql": f"/* {POINTER} */ SELECT 1", "project/seeds/a.csv": "id\n1\n"}
    write(tmp_path, texts)
    assert found(tmp_path, tuple(texts)) == []


def test_project__that_does_not_load__names_what_sqlmesh_would_load(tmp_path: Path) -> None:
    write(tmp_path, {"project/models/m.sql": POINTER, "project/logo.png": POINTER})
    assert found(tmp_path, loaded=False) == [("blocker", "project/models/m.sql")]


def test_large_project__costs_little(tmp_path: Path) -> None:
    """A thousand models of the size of a pointer, the worst case, and as many files that are not."""
    text = "MODEL (name shop.m, kind VIEW);\nSELECT id, amount, status FROM shop.orders\n"
    many = {f"project/models/m{number}.sql": text * 4 for number in range(1000)}
    write(tmp_path, {**many, **{f"project/docs/{number}.md": text * 40 for number in range(1000)}})
    started = perf_counter()
    assert found(tmp_path, tuple(many)) == []
    assert perf_counter() - started < 2.0, "some tenths of a second; other processes run beside it"


def test_link__that_leads_to_itself_hides_no_pointer(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    write(tmp_path, {"models/m.sql": "SELECT 1"})
    assert tmp_path / "models" / "m.sql" in list_project_files_below([tmp_path])
