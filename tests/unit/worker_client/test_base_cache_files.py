"""A base cache that is absent, cut or foreign is a miss; one that leaves the checkout is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.session import open_worker_client_on_laptop
from ci_bot.bot.worker_client import base_branch
from ci_bot.errors import BadInput
from ci_bot.host import make_process_machine
from ci_bot.protocol.review_inputs import BaseCache, KnownFile
from tests.projects.history import Repository

FILE = KnownFile(
    path="models/a.sql",
    content="a" * 64,
    model='"c"."s"."a"',
    record="b" * 64,
    depends_on=[],
    lists_columns=True,
)
GOOD = BaseCache(files=[FILE], models=2).to_json().encode()
BAD = {
    "empty": b"",
    "cut": GOOD[: len(GOOD) // 2],
    "a pickle": b"\x80\x04N.",
    "of a later version": GOOD.replace(b'"schema_version":1', b'"schema_version":2'),
    "with more than ours": GOOD.replace(b'"models":2', b'"models":2,"query":"SELECT 1"'),
}


def read(root: Path, content: bytes | None, *, commit: str | None = None, at: str = "kept") -> int:
    """How many files are known where the cache holds this."""
    machine = replace(make_process_machine(), directory=root)
    with open_worker_client_on_laptop(machine, (".",), None, "", (), timeout_minutes=1) as client:
        file = base_branch._locate_base_cache_file(client, at)
        if content is not None:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        return len(base_branch.read_base_cache_for_worker(client, at, commit))


def repository(tmp_path: Path, *more: str) -> tuple[Path, str]:
    made = Repository(tmp_path / "repository")
    return made.root, made.commit(dict.fromkeys(("config.yaml", *more), "x"))


def test_cache__is_read(tmp_path: Path) -> None:
    root, commit = repository(tmp_path)
    assert read(root, GOOD, commit=commit) == 1


@pytest.mark.parametrize("name", BAD)
def test_cache__that_is_not_whole_and_ours_is_a_miss(tmp_path: Path, name: str) -> None:
    root, _ = repository(tmp_path)
    assert read(root, BAD[name]) == 0


def test_cache__that_is_not_there_is_a_miss(tmp_path: Path) -> None:
    root, _ = repository(tmp_path)
    assert read(root, None) == 0


def test_cache__that_the_pull_request_brought_is_not_read(tmp_path: Path) -> None:
    root, commit = repository(tmp_path, "kept/anything")
    assert read(root, GOOD, commit=commit) == 0


@pytest.mark.parametrize("at", ["../kept", "."])
def test_cache__elsewhere_than_in_the_checkout_is_refused(tmp_path: Path, at: str) -> None:
    root, _ = repository(tmp_path)
    with pytest.raises(BadInput):
        read(root, None, at=at)
