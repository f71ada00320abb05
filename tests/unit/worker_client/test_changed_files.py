"""Which changed files are read, how much of them, and what reports say of the rest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_bot.bot.decision import BotFacts, decide_on_review, list_risky_code_on_load
from ci_bot.bot.sandbox.git_repository import GitFile, GitRepository
from ci_bot.bot.worker_client.review_subject import RequestedFileChanges, list_file_changes
from ci_bot.protocol.files import (
    LARGEST_FILE_BYTES,
    MOST_BYTES,
    UNREAD_SUFFIXES,
    is_file_read_by_a_rule,
)
from ci_bot.protocol.messages import Workplace
from ci_bot.worker.rules import inputs as reading
from ci_bot.worker.rules.files import (
    FILE_RULES,
    MODEL_FILE_RULES,
    PROJECT_RULES,
    STATEMENT_FILE_RULES,
)
from ci_bot.worker.rules.inputs import RuleInputs
from tests.checkout import Repository
from tests.unit.decision.facts import facts

LARGE = LARGEST_FILE_BYTES + 1
EVERY_FILE_RULE = (*FILE_RULES, *MODEL_FILE_RULES, *PROJECT_RULES, *STATEMENT_FILE_RULES)


def every(_file: GitFile) -> bool:
    return True


def workplace(root: Path) -> Workplace:
    return Workplace(repository=str(root), cache_dir="/nowhere", scratch_dir="/nowhere")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "checkout")
    made.commit(README="x")
    return made


def compared(
    repository: Repository, **files: bytes | None
) -> tuple[GitRepository, RequestedFileChanges]:
    """What a commit with these files differs in from the one before; `_DOT_` stands for a dot."""
    before = repository.git("rev-parse", "HEAD")
    for name, content in files.items():
        path = repository.root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    after = repository.commit()
    private = Path(tempfile.mkdtemp(dir=repository.root.parent))
    git = GitRepository(repository.root, private=private)
    return git, list_file_changes(git, before, after)


def test_changes__of_ordinary_files__are_read_on_both_sides(repository: Repository) -> None:
    compared(repository, models__a_DOT_sql=b"SELECT 1", models__b_DOT_py=b"x = 1")
    git, found = compared(
        repository, models__a_DOT_sql=b"SELECT @{1}", models__b_DOT_py=None, c_DOT_sql=b"{{ f() }}"
    )
    assert found.paths == ["c.sql", "models/a.sql", "models/b.py"]
    assert found.too_large == ()
    assert sorted(found.list_old_sides()) == ["models/a.sql", "models/b.py"]
    read = {file.path: (file.before, file.after) for file in found.read_contents(git, every)}
    assert read == {
        "c.sql": (None, b"{{ f() }}"),
        "models/a.sql": (b"SELECT 1", b"SELECT @{1}"),
        "models/b.py": (b"x = 1", None),
    }


def test_contents__are_those_that_are_wanted(repository: Repository) -> None:
    git, found = compared(repository, notes_DOT_txt=b"x", p__m_DOT_sql=b"y", p__a_DOT_so=b"1")
    wanted = found.read_contents(git, lambda file: file.path.startswith("p/"))
    read = {file.path: (file.after, file.read) for file in wanted}
    assert read == {"p/a.so": (None, False), "p/m.sql": (b"y", True)}


@pytest.mark.parametrize("side", ["before", "after"])
def test_too_large__on_either_side__is_read_by_nobody(repository: Repository, side: str) -> None:
    sizes = (LARGE, 1) if side == "before" else (1, LARGE)
    compared(repository, a_DOT_py=b"#" * sizes[0], b_DOT_py=b"x = 1", p_DOT_png=b"0" * sizes[0])
    git, found = compared(
        repository, a_DOT_py=b"#" * sizes[1], b_DOT_py=b"x = 1 ", p_DOT_png=b"1" * sizes[1]
    )
    assert found.too_large == ("a.py",), "nobody reads the picture, so nobody misses it"
    assert list(found.list_old_sides()) == ["b.py"]
    read = {file.path: file.read for file in found.read_contents(git, every)}
    assert read == {"a.py": False, "b.py": True, "p.png": False}
    assert list_risky_code_on_load(
        found.read_contents(git, every), frozenset({"a.py", "b.py"}), ["."]
    ) == ["a.py"], "what nobody could read counts as changed code"


def test_too_large__just_not__is_read(repository: Repository) -> None:
    git, found = compared(repository, a_DOT_sql=b" " * LARGEST_FILE_BYTES)
    assert found.too_large == ()
    (file,) = found.read_contents(git, every)
    assert len(file.after or b"") == LARGEST_FILE_BYTES


@pytest.mark.night
def test_too_large__all_together__the_smallest_are_read(repository: Repository) -> None:
    count = MOST_BYTES // LARGEST_FILE_BYTES + 2
    large = {f"m{number:03}_DOT_sql": b" " * LARGEST_FILE_BYTES for number in range(count)}
    _, found = compared(repository, z_DOT_sql=b"SELECT 1", **large)
    assert len(found.too_large) == 3
    assert "z.sql" not in found.too_large


@pytest.mark.parametrize("changed", [True, False])
def test_too_large__is_told_in_the_report(changed: bool) -> None:
    plan = facts() if not changed else facts(changes=[])
    bot = BotFacts(changed_files=("a.sql", "b.sql"), too_large=("a.sql",))
    told = [item for item in decide_on_review(plan, bot=bot).risks if "Too large" in item.evidence]
    assert [(item.rule, item.severity) for item in told] == [("R10-not-checked", "info")]
    assert "1 changed file (`a.sql`)" in told[0].evidence


def test_rules__read_no_other_files_than_they_say() -> None:
    """A rule that reads another kind of file fails here until `is_file_read_by_a_rule` names that kind."""
    names = [
        f"{folder}{stem}{suffix}"
        for folder in ("", "models/", "macros/", "seeds/", "tests/", "audits/", "p/q/")
        for stem in ("config", "m", ".env", ".gitignore", "requirements", "Dockerfile")
        for suffix in (*sorted(UNREAD_SUFFIXES), "", ".py", ".sql", ".yaml", ".csv", ".tsv", ".md")
    ]
    asked: set[str] = set()

    def read(path: str) -> bytes | None:
        asked.add(path)
        return b"a: 1\n"

    inputs = RuleInputs(
        before={}, after={}, changed_files=tuple(names), files_before=read, files_after=read
    )
    for rule in EVERY_FILE_RULE:
        list(rule(inputs))
    assert asked == {name for name in names if is_file_read_by_a_rule(name)}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "tree"
    (root / "models").mkdir(parents=True)
    (root / "models" / "m.sql").write_text("SELECT 1")
    (root / "large.csv").write_bytes(b"1\n" * LARGE)
    (root / "picture.png").write_bytes(b"x")
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.sql")
    yield root


def test_reader__gives_a_file_whole_or_not_at_all(tree: Path) -> None:
    read = reading.make_head_reader(workplace(tree), ["closed.sql"])
    (tree / "closed.sql").write_text("SELECT 2")
    assert read("models/m.sql") == b"SELECT 1"
    refused = (
        "large.csv",
        "closed.sql",
        "picture.png",
        "loop",
        "out",
        "pipe.sql",
        "gone",
        "models",
    )
    assert [read(path) for path in refused] == [None] * len(refused)
    assert read("x" * 5_000) is None


def test_seed__that_is_too_large_to_be_read__is_still_too_large_for_git(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "seeds").mkdir()
    (root / "seeds" / "s.csv").write_bytes(b"a,b\n" + b"1,2\n" * 1_500_000)
    inputs = RuleInputs(
        before={},
        after={},
        repository=root,
        changed_files=("seeds/s.csv",),
        files_after=reading.make_head_reader(workplace(root)),
    )
    told = {
        (sight.spec.id, sight.evidence.split(":")[0])
        for rule in EVERY_FILE_RULE
        for sight in rule(inputs)
    }
    assert told == {("seed-too-large", "6 MB, about 1,500,001 rows")}


PASSWORD = b"Harbour-42-Lantern"


def test_origins__are_files_that_stay_and_hold_a_word_of_a_new_line(repository: Repository) -> None:
    compared(
        repository,
        ops__dev_DOT_py=b'DB_PASSWORD = "%s"\n' % PASSWORD,
        ops__old_DOT_py=b'DB_PASSWORD = "%s"\n' % PASSWORD,
        notes_DOT_md=b"The harbour has a lantern.\n",
        config_DOT_yaml=b"a: 1\n",
    )
    _, found = compared(
        repository,
        config_DOT_yaml=b"a: 1\npassword: %s\n" % PASSWORD,
        ops__old_DOT_py=b"",
    )
    assert list(found.copied_from) == ["ops/dev.py"]
    assert sorted(found.list_old_sides()) == ["config.yaml", "ops/dev.py", "ops/old.py"]


@pytest.mark.parametrize(
    "line",
    [
        b"region: %s\n" % PASSWORD,  # no line about a credential
        b"password: Another-77-Lantern\n",
        b"password: ${DB_PASSWORD}\n",
        b"",
    ],
)
def test_origins__are_none_of_a_line_that_copies_nothing(
    repository: Repository, line: bytes
) -> None:
    compared(repository, dev_DOT_py=b'DB_PASSWORD = "%s"\n' % PASSWORD, config_DOT_yaml=b"a: 1\n")
    _, found = compared(repository, config_DOT_yaml=b"a: 2\n" + line)
    assert found.copied_from == {}


def test_origins__are_no_links_and_none_that_nobody_reads(repository: Repository) -> None:
    (repository.root / "link.py").symlink_to(PASSWORD.decode())
    compared(
        repository,
        picture_DOT_png=b"password=%s\n" % PASSWORD,
        large_DOT_py=b"# %s\n" % PASSWORD + b"#\n" * 200_000,
    )
    _, found = compared(repository, config_DOT_yaml=b"password: %s\n" % PASSWORD)
    assert found.copied_from == {}
