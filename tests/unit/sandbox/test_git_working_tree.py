"""What git says of a laptop's checkout: its base that nobody named, and what is not committed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.git_repository import GitRepository
from ci_bot.protocol.files import LARGEST_FILE_BYTES
from tests.checkout import Repository

USER = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_DIR": "/nowhere"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "repository")
    found.commit(models__a_sql="SELECT 1", models__b_sql="SELECT 2")
    return found


@pytest.fixture
def git(repository: Repository, tmp_path: Path) -> GitRepository:
    private = tmp_path / "private"
    private.mkdir()
    return GitRepository(repository.root, private=private)


def everything(root: Path) -> dict[str, tuple[int, int]]:
    """Each file with its size and time."""
    found = {path: path.lstat() for path in root.rglob("*") if not path.is_dir()}
    return {str(path): (at.st_size, at.st_mtime_ns) for path, at in found.items()}


def changed(git: GitRepository) -> dict[str, str]:
    tree = git.working.write_tree(USER)
    assert tree is not None
    return {file.path: file.status for file in git.changed_files(git.read_head(), tree)}


def test_working_tree__is_that_of_the_commit_where_nothing_has_changed(
    repository: Repository, git: GitRepository
) -> None:
    assert git.working.write_tree(USER) == repository.git("rev-parse", "HEAD^{tree}")


def test_working_tree__has_what_is_changed_added_deleted_or_staged(
    repository: Repository, git: GitRepository
) -> None:
    (repository.root / "models/a.sql").write_text("SELECT 3")
    (repository.root / "models/b.sql").unlink()
    (repository.root / "new file.sql").write_text("SELECT 4")
    (repository.root / "staged.sql").write_text("SELECT 5")
    repository.git("add", "staged.sql")
    before = everything(repository.root)

    found = changed(git)

    assert found == {
        "models/a.sql": "M",
        "models/b.sql": "D",
        "new file.sql": "A",
        "staged.sql": "A",
    }
    assert everything(repository.root) == before, "nothing is written to the checkout"


def test_working_tree__its_content_can_be_read(repository: Repository, git: GitRepository) -> None:
    (repository.root / "models/a.sql").write_text("SELECT 3")
    tree = git.working.write_tree(USER)
    assert tree is not None
    with git.objects.open_commit_files(tree, at_most=100) as read:
        assert read("models/a.sql") == b"SELECT 3"
        assert read("models/b.sql") == b"SELECT 2"
    assert git.list_files_mentioning(tree, "3") == ["models/a.sql"]


def test_working_tree__is_without_what_git_ignores_and_what_nobody_reads(
    repository: Repository, git: GitRepository
) -> None:
    repository.commit(**{".gitignore": "*.log\n"})
    exclude = repository.root / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("mine.sql\n")
    (repository.root / "spark.log").write_text("x")
    (repository.root / "mine.sql").write_text("SELECT 1")
    with (repository.root / "state.db").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    (repository.root / "models/.env").write_text("PASSWORD=x")
    (repository.root / ".env.local").write_text("PASSWORD=x")
    Repository(repository.root / "another").commit(x_sql="SELECT 1")
    (repository.root / "link").symlink_to("/nowhere")
    assert changed(git) == {"link": "A"}


def test_working_tree__has_an_environments_file_that_is_staged(
    repository: Repository, git: GitRepository
) -> None:
    (repository.root / ".env").write_text("PASSWORD=x")
    repository.git("add", "--force", ".env")
    assert changed(git) == {".env": "A"}


def test_working_tree__of_a_linked_worktree_is_its_own(
    repository: Repository, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (repository.root / "models/a.sql").write_text("SELECT 'main'")
    (tmp_path / "linked/models/b.sql").write_text("SELECT 'linked'")
    (tmp_path / "private").mkdir()
    assert changed(GitRepository(tmp_path / "linked", private=tmp_path / "private")) == {
        "models/b.sql": "M"
    }


def test_working_tree__of_an_index_that_is_split(
    repository: Repository, git: GitRepository
) -> None:
    repository.git("update-index", "--split-index")
    (repository.root / "models/a.sql").write_text("SELECT 3")
    before = everything(repository.root).keys()
    assert changed(git) == {"models/a.sql": "M"}
    # Whoever reads a shared index makes it younger, so that git keeps it.
    assert everything(repository.root).keys() == before


def test_working_tree__in_the_middle_of_a_merge_is_none(
    repository: Repository, git: GitRepository
) -> None:
    repository.git("checkout", "-q", "-b", "side")
    repository.commit(models__a_sql="SELECT 'side'")
    repository.git("checkout", "-q", "main")
    repository.commit(models__a_sql="SELECT 'main'")
    with pytest.raises(Exception, match="merge"):
        repository.git("merge", "side")
    (repository.root / "models/a.sql").unlink()
    (repository.root / "models/a.sql").mkdir()
    assert git.working.write_tree(USER) is None


def test_working_tree__with_a_colon_in_its_path(tmp_path: Path) -> None:
    found = Repository(tmp_path / 'a:b "c')
    found.commit(a_sql="SELECT 1")
    (found.root / "b.sql").write_text("SELECT 2")
    (tmp_path / "private:").mkdir()
    assert changed(GitRepository(found.root, private=tmp_path / "private:")) == {"b.sql": "A"}


# --- the base that nobody named -------------------------------------------------------------------


def test_base__is_what_origin_says(repository: Repository, git: GitRepository) -> None:
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository.git("update-ref", "refs/remotes/origin/trunk", "HEAD")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert git.find_default_base() == "origin/trunk"


def test_base__without_that_is_the_usual_one(repository: Repository, git: GitRepository) -> None:
    assert git.find_default_base() == "main"
    repository.git("update-ref", "refs/remotes/origin/master", "HEAD")
    assert git.find_default_base() == "origin/master"
    # What it names is gone.
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert git.find_default_base() == "origin/master"


def test_base__where_nothing_can_be_one(repository: Repository, git: GitRepository) -> None:
    repository.git("branch", "--move", "work")
    assert git.find_default_base() is None


def test_fork_point__is_where_the_branch_left_its_base(
    repository: Repository, git: GitRepository
) -> None:
    left = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-q", "-b", "work")
    work = repository.commit(models__a_sql="SELECT 'work'")
    repository.git("checkout", "-q", "main")
    main = repository.commit(models__b_sql="SELECT 'main'")
    assert git.find_fork_point(main, work) == left
    assert git.find_fork_point(left, work) == left
    repository.git("checkout", "-q", "--orphan", "alone")
    alone = repository.commit(c_sql="SELECT 1")
    assert git.find_fork_point(main, alone) == main
