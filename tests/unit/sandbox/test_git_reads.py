"""Git reads of a real checkout, of hostile ones as well."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.git_objects import GitBlob
from ci_bot.bot.sandbox.git_repository import (
    GitFile,
    GitRepository,
    strip_credentials_of_git_remote,
)
from ci_bot.bot.sandbox.launch import SandboxIdentity
from ci_bot.errors import BadInput
from tests.checkout import GIT, Repository

WORKER = SandboxIdentity(uid=61_234, gid=61_234)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")


@pytest.fixture
def repository(ground: Path) -> Repository:
    made = Repository(ground / "checkout")
    made.commit(models__a_sql="SELECT 1", models__b_sql="SELECT 2", README="x")
    made.git("checkout", "--quiet", "-b", "feature")
    made.commit(models__a_sql="SELECT 10", models__c_sql="SELECT 3", models__b_sql=None)
    made.git("checkout", "--quiet", "main")
    made.commit(README="y")
    made.git("merge", "--quiet", "--no-ff", "--message", "merge", "feature")
    return made


@pytest.fixture
def reads(repository: Repository, ground: Path) -> GitRepository:
    (ground / "private").mkdir()
    return GitRepository(repository.root, private=ground / "private")


def test_parents__of_a_merge(repository: Repository, reads: GitRepository) -> None:
    merge = reads.read_head()
    assert merge == repository.git("rev-parse", "HEAD")
    assert reads.list_parents(merge) == [
        repository.git("rev-parse", "HEAD^1"),
        repository.git("rev-parse", "feature"),
    ]


@pytest.mark.parametrize("depth", [1, 2])
def test_require__the_base_of_a_shallow_checkout(
    repository: Repository, ground: Path, depth: int
) -> None:
    shallow = ground / "shallow"
    repository.git(
        "clone", "--quiet", f"--depth={depth}", f"file://{repository.root}", str(shallow)
    )
    (ground / "private").mkdir()
    reads = GitRepository(shallow, private=ground / "private")
    merge = reads.read_head()
    base = reads.list_parents(merge)[0]
    if depth == 2:
        reads.require_commit(base)
        assert reads.changed_files(base, merge)
        return
    with pytest.raises(BadInput, match="is not in the checkout") as failure:
        reads.require_commit(base)
    assert "fetch-depth: 2" in (failure.value.hint or "")
    assert failure.value.exit_code == 2


def test_changed_files__between_base_and_merge(reads: GitRepository) -> None:
    merge = reads.read_head()
    assert reads.changed_files(reads.list_parents(merge)[0], merge) == [
        GitFile("M", "models/a.sql"),
        GitFile("D", "models/b.sql"),
        GitFile("A", "models/c.sql"),
    ]


def test_changed_files__odd_names(repository: Repository, reads: GitRepository) -> None:
    before = reads.read_head()
    odd = ["new\nline.sql", 'quo"te.sql', "-option.sql", "tab\t.sql", "ü.sql", "$(id).sql"]
    for name in odd:
        (repository.root / name).write_text("x")
    (repository.root / os.fsdecode(b"latin\xe9.sql")).write_text("x")
    after = repository.commit()
    found = {file.path for file in reads.changed_files(before, after)}
    assert found == {*odd, "latin\ufffd.sql"}


def test_changed_files__same_commit(reads: GitRepository) -> None:
    assert reads.changed_files(reads.read_head(), reads.read_head()) == []


@pytest.mark.parametrize(
    "commit", ["--upload-pack=x", "HEAD", "main", "$(id)", "", "a" * 39, "A" * 40]
)
def test_commits__only_whole_ids(reads: GitRepository, commit: str) -> None:
    for read in (
        reads.list_parents,
        reads.has_commit,
        reads.require_commit,
        lambda it: reads.changed_files(it, it),
    ):
        with pytest.raises(BadInput, match="is not a commit id"):
            read(commit)


@pytest.mark.parametrize("revision", ["--output=/tmp/x", "", " ", "none", "$(id)", "HEAD:README"])
def test_resolve__no_options_and_no_guesses(reads: GitRepository, revision: str) -> None:
    with pytest.raises(BadInput):
        reads.resolve_revision(revision)


def test_resolve__branch(repository: Repository, reads: GitRepository) -> None:
    assert reads.resolve_revision("feature") == repository.git("rev-parse", "feature")


def test_head__no_repository(ground: Path) -> None:
    with pytest.raises(BadInput, match="has no commit HEAD"):
        GitRepository(ground, private=ground).read_head()


def test_export__the_base_as_it_was(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    base = reads.list_parents(reads.read_head())[0]
    assert reads.exports.export_commit(base, ground / "base", identity=None) == []
    files = {path.relative_to(ground / "base") for path in (ground / "base").rglob("*.sql")}
    assert files == {Path("models/a.sql"), Path("models/b.sql")}
    assert (ground / "base" / "models" / "a.sql").read_text() == "SELECT 1"
    assert (ground / "base" / "README").read_text() == "y"
    assert repository.git("status", "--porcelain") == ""


@as_root
def test_export__belongs_to_the_worker(reads: GitRepository, ground: Path) -> None:
    reads.exports.export_commit(reads.read_head(), ground / "base", identity=WORKER)
    for path in (ground / "base", *(ground / "base").rglob("*")):
        assert path.stat().st_uid == WORKER.uid


def test_export__attributes_and_links(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    attributes = "*.sql filter=evil export-ignore\nREADME export-subst\n"
    (repository.root / "out").symlink_to("/etc/passwd")
    (repository.root / "in").symlink_to("README")
    (repository.root / ".gitattributes").write_text(attributes)
    commit = repository.commit(README="$Format:%H$")
    assert reads.exports.export_commit(commit, ground / "base", identity=None) == ["out"]
    assert (ground / "base" / "models" / "a.sql").read_text() == "SELECT 10"
    assert (ground / "base" / "README").read_text() == "$Format:%H$"
    assert (ground / "base" / "in").readlink() == Path("README")


def traps(repository: Repository, evidence: Path) -> dict[str, str]:
    program = repository.root / ".git" / "trap"
    program.write_text(f"#!/bin/sh\ntouch {evidence}\ncat\n")
    program.chmod(0o755)
    return {
        "core.fsmonitor": str(program),
        "core.hooksPath": str(repository.root / ".git"),
        "core.sshCommand": str(program),
        "core.pager": str(program),
        "core.gitProxy": str(program),
        "diff.external": str(program),
        "diff.evil.textconv": str(program),
        "filter.evil.smudge": str(program),
        "filter.evil.clean": str(program),
        "filter.evil.process": str(program),
        "filter.evil.required": "true",
        "remote.origin.url": "ssh://example.invalid/x",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(program),
        "extensions.partialClone": "origin",
        "credential.helper": str(program),
        "gpg.program": str(program),
        "uploadpack.packObjectsHook": str(program),
        "core.alternateRefsCommand": str(program),
        "core.attributesFile": str(repository.root / ".gitattributes"),
        "core.editor": str(program),
        "interactive.diffFilter": str(program),
        "merge.evil.driver": str(program),
        "pager.cat-file": str(program),
        "alias.rev-parse": f"!{program}",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "submodule.vendor.url": f"ext::{program}",
        "submodule.vendor.active": "true",
        "submodule.vendor.update": f"!{program}",
        "submodule.recurse": "true",
        "fetch.recurseSubmodules": "true",
        "status.submoduleSummary": "true",
        "diff.submodule": "log",
        "trace2.eventTarget": str(evidence),
    }


def everything(reads: GitRepository, target: Path) -> None:
    """Each read once; that some are refused is as good."""
    merge = reads.read_head()
    base = reads.list_parents(merge)[0]
    changed = reads.changed_files(base, merge)

    def contents() -> None:
        with reads.objects.open_contents(at_most=1_000) as read:
            for file in changed:
                assert file.after is None or read(file.after.id) is not None

    steps: list[Callable[[], object]] = [
        contents,
        lambda: reads.objects.read_sizes(file.after.id for file in changed if file.after),
        lambda: reads.exports.export_blobs(
            {file.path: file.after for file in changed if file.after},
            target.with_name("blobs"),
            identity=None,
        ),
        lambda: reads.exports.export_commit(base, target, identity=None),
        lambda: reads.has_commit("0" * 40),
        reads.read_origin,
        lambda: reads.resolve_revision("main"),
    ]
    for step in steps:
        step()


def test_traps__no_program_of_the_configuration_runs(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    evidence = ground / "evidence"
    repository.commit(models__d_sql="SELECT 4")
    (repository.root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    repository.commit()
    repository.git(
        "merge", "--quiet", "--no-ff", "--allow-unrelated-histories", "-m", "m", "feature"
    )
    for name, value in traps(repository, evidence).items():
        repository.git("config", name, value)
    everything(reads, ground / "base")
    assert not evidence.exists()
    assert (ground / "base" / "models" / "a.sql").exists()


def test_traps__submodules_that_are_programs_and_hooks__do_nothing(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    """A submodule's URL may be a command (`ext::`), and a hook may follow each write of an index."""
    evidence = ground / "evidence"
    set_traps = traps(repository, evidence)
    (repository.root / ".gitmodules").write_text(
        f'[submodule "vendor"]\n\tpath = vendor\n\turl = ext::sh -c touch% {evidence}\n'
        f"\tupdate = !touch {evidence}\n"
    )
    (repository.root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil ident\n")
    base = repository.git("rev-parse", "HEAD")
    repository.git("add", "--all")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},vendor")
    repository.git("commit", "--quiet", "--message", "vendor")
    merge = repository.git("commit-tree", "-m", "m", "-p", base, "-p", "HEAD", "HEAD^{tree}")
    repository.git("update-ref", "refs/heads/main", merge)
    for name, value in set_traps.items():
        repository.git("config", name, value)
    for hook in (
        *("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"),
        *("pre-auto-gc", "post-rewrite", "post-merge", "update"),
    ):
        shutil.copy(set_traps["core.fsmonitor"], repository.root / ".git" / "hooks" / hook)
    everything(reads, ground / "base")
    reads.exports.export_commit(merge, ground / "head", identity=None)
    assert not evidence.exists()
    assert list((ground / "head" / "vendor").iterdir()) == [], "a submodule stays empty"
    assert (ground / "head" / "models" / "a.sql").read_text() == "SELECT 10"


@pytest.mark.parametrize("name", ["..", ".git", "a/../../out", "/out"])
def test_export__of_a_tree_that_leads_out__writes_nothing_there(
    repository: Repository, reads: GitRepository, ground: Path, name: str
) -> None:
    """git itself makes no such tree; somebody who writes objects by hand can."""
    blob = repository.git("rev-parse", "HEAD:README")
    inner = write_tree(repository, "100644 out.sql\0", blob)
    commit = repository.git(
        "commit-tree", "-m", "x", write_tree(repository, f"40000 {name}\0", inner)
    )
    with pytest.raises(BadInput, match="could not read the checkout"):
        reads.exports.export_commit(commit, ground / "deep" / "base", identity=None)
    target = ground / "deep" / "blobs"
    target.parent.mkdir(exist_ok=True)
    reads.exports.export_blobs({f"{name}/out.sql": GitBlob(blob, "100644")}, target, identity=None)
    assert [path for path in ground.rglob("out.sql") if ".git" not in path.parts] == []
    assert not Path("/out").exists()


def write_tree(repository: Repository, entry: str, name: str) -> str:
    """A tree with one entry, whatever it is called."""
    options = ["hash-object", "-t", "tree", "-w", "--stdin", "--literally"]
    done = subprocess.run(
        [GIT, "-C", str(repository.root), *options],
        input=entry.encode() + bytes.fromhex(name),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def test_traps__the_trap_would_spring(repository: Repository, ground: Path) -> None:
    """The fixture is a real trap: plain git, as anybody would call it, runs the program."""
    evidence = ground / "evidence"
    repository.git("config", "core.fsmonitor", traps(repository, evidence)["core.fsmonitor"])
    subprocess.run([GIT, "-C", str(repository.root), "status"], capture_output=True, check=False)
    assert evidence.exists()


@as_root
def test_traps__a_checkout_of_another_owner(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    for path in (repository.root, *repository.root.rglob("*")):
        os.chown(path, 1001, 1001, follow_symlinks=False)
    plain = subprocess.run(
        [GIT, "-C", str(repository.root), "status"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(ground)},
    )
    assert "dubious ownership" in plain.stderr
    everything(reads, ground / "base")
    assert not (ground / ".gitconfig").exists()


def test_missing_object__is_not_fetched(
    repository: Repository, reads: GitRepository, ground: Path
) -> None:
    merge = reads.read_head()
    blob = repository.git("rev-parse", f"{merge}:models/a.sql")
    (repository.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(BadInput, match="could not read the checkout"):
        reads.exports.export_commit(merge, ground / "base", identity=None)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://github.com/org/repo.git", "https://github.com/org/repo.git"),
        ("https://x-access-token:secret@github.com/org/repo", "https://github.com/org/repo"),
        ("https://secret@github.com:8443/org/repo", "https://github.com:8443/org/repo"),
        ("git@github.com:org/repo.git", "git@github.com:org/repo.git"),
        ("ssh://git@github.com/org/repo", "ssh://git@github.com/org/repo"),
        ("/srv/git/repo", "/srv/git/repo"),
    ],
)
def test_origin__without_credentials(
    repository: Repository, reads: GitRepository, url: str, shown: str
) -> None:
    assert reads.read_origin() is None
    repository.git("config", "remote.origin.url", url)
    assert reads.read_origin() == strip_credentials_of_git_remote(url) == shown


def test_git__without_a_git_program(ground: Path) -> None:
    with pytest.raises(BadInput, match="no git program"):
        GitRepository(ground, private=ground, executable="git-that-is-not-there").read_head()


def test_mentions__are_whole_words_in_any_case_and_file(
    repository: Repository, ground: Path
) -> None:
    commit = repository.commit(
        macros__a_sql="-- twice", models__d_sql="SELECT @TWICE(1)", notes="twiced"
    )
    git = GitRepository(repository.root, private=ground / "private")
    assert git.list_files_mentioning(commit, "twice") == ["macros/a.sql", "models/d.sql"]
    assert git.list_files_mentioning(commit, "nobody") == []
    assert git.list_files_mentioning(commit, "-e") == []
