"""The copy of the checkout and the private directories, on a real file system."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.checkout_copy import (
    CODE_BUDGET_BYTES,
    LINK_FROM_BYTES,
    OTHER_BUDGET_BYTES,
    copy_checkout_into_sandbox,
    seal_tree_for_sandbox,
)
from ci_bot.bot.sandbox.launch import (
    SandboxFreeSpace,
    SandboxIdentity,
    list_disk_reserves_of_sandbox,
)
from ci_bot.bot.sandbox.run_directories import (
    open_sandbox_workspace,
    read_file_inside_sandbox,
    remove_tree_filled_by_sandbox,
    resolve_inside_checkout,
    resolve_project_paths_for_sandbox,
)
from ci_bot.errors import BadInput
from tests.conftest import missing

GIB = 1024**3
WORKER = SandboxIdentity(uid=61_234, gid=61_234)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_sql", ".sql")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def test_copy__code_without_history_caches_and_installed_packages(ground: Path) -> None:
    source, target = ground / "source", ground / "target"
    write(source, models__a_sql="SELECT 1", config="x")
    for name in (
        ".git/config",
        ".cache/entry",
        "sub/.git",
        "sub/.cache/x",
        "models/__pycache__/a.pyc",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("planted")
    (source / "macros.pyc").write_text("planted")
    (source / "env" / "lib").mkdir(parents=True)
    (source / "env" / "pyvenv.cfg").write_text("")
    (source / ".env").write_text("A=1")
    os.mkfifo(source / "pipe")
    report = copy_checkout_into_sandbox(source, target, identity=None)
    assert tree(target) == {"models", "models/a.sql", "config", "sub", ".env"}
    assert (target / "models" / "a.sql").read_text() == "SELECT 1"
    assert (report.files, report.copied_bytes, report.linked) == (3, 12, 0)


def test_copy__modes_and_original_untouched(ground: Path) -> None:
    source, target = ground / "source", ground / "target"
    write(source, a_sql="x", run="y")
    (source / "run").chmod(0o755)
    copy_checkout_into_sandbox(source, target, identity=None)
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert stat.S_IMODE((target / "a.sql").stat().st_mode) == 0o600
    assert stat.S_IMODE((target / "run").stat().st_mode) == 0o700
    (target / "a.sql").write_text("changed")
    assert (source / "a.sql").read_text() == "x"


def test_copy__of_a_file_that_the_disk_has_no_room_for__is_refused_before_it_is_written(
    ground: Path,
) -> None:
    """A file can be large on paper only, and its copy is not."""
    source, target = ground / "source", ground / "target"
    write(source, a_sql="x")
    with (source / "big.duckdb").open("wb") as file:
        file.truncate(10 * GIB)
    free = SandboxFreeSpace(10 * GIB, None)
    disks = list_disk_reserves_of_sandbox([ground], GIB, read=lambda _directory: free)

    with pytest.raises(BadInput, match=r"`big.duckdb` has 10,240 MiB, and the disk") as no:
        copy_checkout_into_sandbox(source, target, identity=None, disks=disks)

    assert (no.value.reason_code, no.value.exit_code) == ("disk_full", 2)
    assert not (target / "big.duckdb").exists()
    free = SandboxFreeSpace(20 * GIB, None)
    with (source / "big.duckdb").open("wb") as file:
        file.truncate(LINK_FROM_BYTES + 1)
    copy_checkout_into_sandbox(source, ground / "again", identity=None, disks=disks)


@as_root
def test_workspace__on_a_disk_that_is_full__says_so(ground: Path) -> None:
    small = ground / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)], check=False
    )
    if mounted.returncode:
        missing("a small disk needs the right to mount one")
    try:
        source = ground / "source"
        write(source, **{f"m{number}_sql": "x" * 30_000 for number in range(60)})
        with (
            pytest.raises(BadInput, match="is full") as no,
            open_sandbox_workspace(source, parent=small, identity=None, copy=True),
        ):
            pass
        assert no.value.reason_code == "disk_full"
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["/bin/umount", str(small)], check=True)


def test_copy__links_that_leave_are_dropped(ground: Path) -> None:
    source, target = ground / "source", ground / "target"
    write(source, models__a_sql="SELECT 1", shared__b="b", dotgit="x")
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("token")
    (ground / "outside").write_text("secret")
    links = {
        "inside": "models/a.sql",
        "models/up": "../shared",
        "absolute_inside": str(source / "models" / "a.sql"),
        "dangling": "models/none.sql",
        "etc": "/etc",
        "outside": "../outside",
        "through": "models/up/../../outside",
        "git": ".git/config",
        "loop": "loop",
    }
    for name, goal in links.items():
        (source / name).symlink_to(goal)
    report = copy_checkout_into_sandbox(source, target, identity=None)
    assert sorted(report.dropped_links) == ["etc", "git", "outside", "through"]
    assert (target / "inside").read_text() == "SELECT 1"
    assert (target / "models" / "up" / "b").read_text() == "b"
    assert (target / "absolute_inside").resolve() == (target / "models" / "a.sql").resolve()
    for path in target.rglob("*"):
        if path.is_symlink() and path.exists():
            assert target.resolve() in path.resolve().parents


@as_root
def test_copy__belongs_to_the_worker_and_links_what_is_large(ground: Path) -> None:
    source, target = ground / "source", ground / "target"
    write(
        source, a_sql="SELECT 1", big="x" * (LINK_FROM_BYTES + 1), large_sql="y" * LINK_FROM_BYTES
    )
    write(source, hidden="z" * (LINK_FROM_BYTES + 1), open="z" * (LINK_FROM_BYTES + 1))
    (source / "state.db").write_text("d" * (LINK_FROM_BYTES + 1))
    (source / "hidden").chmod(0o600)
    (source / "open").chmod(0o666)
    write(source, closed__big="x" * (LINK_FROM_BYTES + 1))
    (source / "closed").chmod(0o700)
    report = copy_checkout_into_sandbox(source, target, identity=WORKER)
    assert report.linked == 1
    assert (target / "big").readlink() == source / "big"
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            assert (path.stat().st_uid, path.stat().st_gid) == (WORKER.uid, WORKER.gid)
    seen = subprocess.run(
        ["/bin/sh", "-c", "cat big closed/big hidden state.db | wc -c; echo more >> big"],
        cwd=target,
        user=WORKER.uid,
        group=WORKER.gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert int(seen.stdout) == 4 * (LINK_FROM_BYTES + 1)
    assert "Permission denied" in seen.stderr
    assert (source / "big").stat().st_size == LINK_FROM_BYTES + 1


@as_root
@pytest.mark.parametrize(
    ("suffix", "budget"), [("_sql", CODE_BUDGET_BYTES), ("", OTHER_BUDGET_BYTES)]
)
def test_copy__budget_of_code_and_of_the_rest(ground: Path, suffix: str, budget: int) -> None:
    source, target = ground / "source", ground / "target"
    count = budget // LINK_FROM_BYTES + 20
    for number in range(count):
        write(source, **{f"data__{number:04}{suffix}": "x" * LINK_FROM_BYTES})
    # A directory without code would be linked as a whole.
    write(source, data__zzzz_sql="x", zz__small_sql="x", zz__small="x")
    report = copy_checkout_into_sandbox(source, target, identity=WORKER)
    assert report.files == count + 3
    assert budget - LINK_FROM_BYTES < report.copied_bytes <= budget + 3
    assert report.linked >= 20
    assert len([path for path in target.rglob("*") if path.is_file()]) == count + 3


@as_root
def test_copy__directories_without_code_are_linked_whole(ground: Path) -> None:
    source, target = ground / "source", ground / "target"
    large = "x" * (LINK_FROM_BYTES + 1)
    write(source, docs__images__a=large, docs__b="x", data__c=large, data__deep__model_sql="x")
    write(source, loose__d=large, hidden__e=large, linked__f=large, small__g="x", git__h=large)
    (source / "loose").chmod(0o777)
    (source / "hidden").chmod(0o700)
    (source / "linked" / "out").symlink_to("/etc/passwd")
    (source / "git" / ".git").mkdir()
    for number in range(40):
        write(source, **{f"many__{number}": "x"})
    report = copy_checkout_into_sandbox(source, target, identity=WORKER)
    links = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_symlink()}
    assert links == {"docs", "many", "data/c", "linked/f", "git/h", "loose/d"}
    assert report.dropped_links == ["linked/out"]
    assert report.files == 9 + 40
    assert (target / "docs" / "images" / "a").read_text() == large
    assert (target / "hidden" / "e").read_text() == large
    assert not (target / "git" / ".git").exists()
    assert not (target / "linked" / "out").exists()


def test_copy__deep_trees(ground: Path) -> None:
    source = ground / "source"
    source.mkdir()
    path = source
    for _ in range(300):
        path = path / "d"
        path.mkdir()
    (path / "model.sql").write_text("SELECT 1")
    assert copy_checkout_into_sandbox(source, ground / "target", identity=None).files == 1


@as_root
def test_seal_tree__owner_and_links(ground: Path) -> None:
    write(ground, base__a_sql="x")
    (ground / "base" / "out").symlink_to("/etc/passwd")
    (ground / "base" / "in").symlink_to("a.sql")
    assert seal_tree_for_sandbox(ground / "base", identity=WORKER) == ["out"]
    assert tree(ground / "base") == {"a.sql", "in"}
    assert (ground / "base" / "a.sql").stat().st_uid == WORKER.uid


@as_root
def test_workspace__directories_belong_to_the_worker_alone(ground: Path) -> None:
    write(ground, checkout__models__a_sql="x")
    with open_sandbox_workspace(
        ground / "checkout", parent=ground, identity=WORKER, copy=True
    ) as workspace:
        assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o710
        assert workspace.root.stat().st_uid == 0
        private = [workspace.home, workspace.temporary, workspace.cache_dir, workspace.scratch_dir]
        for path in (*private, workspace.overlay, workspace.repository):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
            assert path.stat().st_uid == WORKER.uid
        assert workspace.channel.stat().st_uid == 0
        assert workspace.repository != ground / "checkout"
        assert workspace.make_workplace().cache_dir == str(workspace.cache_dir)
        root = workspace.root
    assert not root.exists()


def test_workspace__on_a_laptop_the_checkout_itself(ground: Path) -> None:
    write(ground, checkout__a_sql="x")
    with open_sandbox_workspace(
        ground / "checkout", parent=ground, identity=None, copy=False
    ) as workspace:
        assert workspace.repository == (ground / "checkout").resolve()
        assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o700
        (workspace.cache_dir / "entry").write_text("pickle")
    assert tree(ground) == {"checkout", "checkout/a.sql"}


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_workspace__removed_after_a_failure(ground: Path, failure: type[BaseException]) -> None:
    write(ground, checkout__a_sql="x")
    with (
        pytest.raises(failure),
        open_sandbox_workspace(ground / "checkout", parent=ground, identity=None, copy=True),
    ):
        raise failure
    assert tree(ground) == {"checkout", "checkout/a.sql"}


def test_workspace__removed_if_the_copy_fails(ground: Path) -> None:
    with (
        pytest.raises(FileNotFoundError),
        open_sandbox_workspace(ground / "none", parent=ground, identity=None, copy=True),
    ):
        pytest.fail("there is no checkout")
    assert tree(ground) == set()


def test_workspace__abandoned_is_removed_by_another_process(ground: Path) -> None:
    write(ground, checkout__a_sql="x")
    with open_sandbox_workspace(
        ground / "checkout", parent=ground, identity=None, copy=True
    ) as workspace:
        workspace.remove_in_background().wait()
        assert not workspace.root.exists()
        workspace.root.mkdir()


def test_remove_tree__deeper_than_any_recursion(ground: Path) -> None:
    root = ground / "deep"
    root.mkdir()
    handle = os.open(root, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=handle)
        deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.close(handle)
    remove_tree_filled_by_sandbox(root, patience=120.0)
    assert not root.exists()


def test_remove_tree__that_takes_long__goes_on_beside_the_run(ground: Path) -> None:
    root = ground / "wide"
    for number in range(3_000):
        (root / f"{number % 50}" / f"{number}").mkdir(parents=True)
    remove_tree_filled_by_sandbox(root, patience=0.0)
    assert not root.exists(), "the next run may have the name"
    for _ in range(600):
        if not any(ground.iterdir()):
            break
        time.sleep(0.1)
    assert tree(ground) == set()


def test_remove_tree__in_the_time_that_a_run_has(ground: Path) -> None:
    write(ground, gone__a__b="x")
    remove_tree_filled_by_sandbox(ground / "gone")
    assert tree(ground) == set(), "nothing was left to another process"


def test_remove_tree__directories_without_rights(ground: Path) -> None:
    write(ground, gone__a__b="x")
    (ground / "gone" / "a").chmod(0)
    remove_tree_filled_by_sandbox(ground / "gone")
    assert not (ground / "gone").exists()


def test_remove_tree__follows_no_link(ground: Path) -> None:
    write(ground, keep__a="x", gone__b="y")
    (ground / "gone" / "link").symlink_to(ground / "keep")
    remove_tree_filled_by_sandbox(ground / "gone")
    assert tree(ground) == {"keep", "keep/a"}


# --- paths from inputs ----------------------------------------------------------------------------


def test_project_paths__relative_absolute_and_doubled(ground: Path) -> None:
    write(ground, analytics__a="x", finance__b="x")
    (ground / "link").symlink_to("finance")
    paths = [
        "analytics",
        "./analytics/",
        str(ground / "finance"),
        "link",
        ".",
        "analytics/../finance",
    ]
    assert resolve_project_paths_for_sandbox(ground, paths) == ["analytics", "finance", "."]


def test_project_paths__all_problems_in_one_message(ground: Path) -> None:
    write(ground, a="x")
    (ground / "etc").symlink_to("/etc")
    bad = ["..", "/etc", "etc", "../" + ground.name + "x", "a", "none", "", "x\0y", "a/../../.."]
    with pytest.raises(BadInput) as failure:
        resolve_project_paths_for_sandbox(ground, bad)
    assert failure.value.exit_code == 2
    assert failure.value.message.count("Project path") == len(bad)


def test_inside__prefix_of_the_name_is_not_inside(ground: Path) -> None:
    write(ground, repo__a="x", repository__b="x")
    with pytest.raises(BadInput):
        resolve_inside_checkout(ground / "repo", "../repository/b", what="File")
    assert (
        resolve_inside_checkout(ground / "repo", "a", what="File")
        == ground.resolve() / "repo" / "a"
    )


def test_read_inside__only_regular_files_of_bounded_size(ground: Path) -> None:
    write(ground, a="12345")
    os.mkfifo(ground / "pipe")
    (ground / "directory").mkdir()
    (ground / "out").symlink_to("/etc/passwd")
    assert read_file_inside_sandbox(ground, "a", at_most=5) == b"12345"
    for name in ("none", "pipe", "directory"):
        assert read_file_inside_sandbox(ground, name, at_most=5) is None
    for name, limit in (("out", 5), ("a", 4), ("../x", 5)):
        with pytest.raises(BadInput):
            read_file_inside_sandbox(ground, name, at_most=limit)
