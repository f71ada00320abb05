"""The walls between the packages: import contracts, the table that tells of them, and names."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
import shutil
import subprocess
import sysconfig
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.architecture import BEGIN, END, PAGE, ROOT, Contracts, table, written

# Imports that go through a wall: into which module, the statement, and whom it would reach.
PLANTED = [
    ("bot.worker_client.client", "from ci_bot.worker import project", "ci_bot.worker.project"),
    ("bot.handlers.gate", "import ci_bot.worker", "ci_bot.worker"),
    ("worker.planning.plan_options", "from ci_bot.bot import actions", "ci_bot.bot.actions"),
    ("protocol.cost", "from ci_bot.errors import BotError", "ci_bot.errors"),
    ("bot.report.model.view", "from ci_bot.bot import cli", "ci_bot.bot.cli"),
    ("bot.report.model.view", "from ci_bot.bot import decision", "ci_bot.bot.decision"),
    (
        "bot.report.model.view",
        "from ci_bot.bot.report.markdown import notices",
        "ci_bot.bot.report.markdown.notices",
    ),
    ("worker.project.opening", "from ci_bot.worker import review", "ci_bot.worker.review"),
    ("worker.cleanup.reclaim", "from ci_bot.worker import apply", "ci_bot.worker.apply"),
    ("bot.decision.judgement", "import sqlmesh", "sqlmesh"),
    ("bot.worker_client.surveys", "from pyspark.sql import SparkSession", "pyspark"),
    ("bot.handlers.apply", "import requests", "requests"),
    ("worker.sqlmesh_compat.states", "from github import Github", "github"),
    ("worker.review.review_plan", "from ci_bot.host import Machine", "ci_bot.host"),
    ("worker.rules.run_rules", "import subprocess", "subprocess"),
    ("bot.decision.judgement", "from os import environ", "os"),
    ("bot.report.markdown.marker", "from ci_bot.host import Machine", "ci_bot.host"),
    ("bot.actions.choose_activity", "from ci_bot.bot import sandbox", "ci_bot.bot.sandbox"),
    ("redaction.known_secrets", "import time", "time"),
    ("protocol.files", "import tempfile", "tempfile"),
]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on the package below `root`."""
    program = shutil.which("lint-imports", path=sysconfig.get_path("scripts"))
    assert program, "lint-imports is missing; install requirements-dev.lock"
    return subprocess.run(
        [program, "--no-cache"], cwd=root, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, to be changed."""
    shutil.copytree(
        ROOT / "ci_bot", tmp_path / "ci_bot", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports__keep_every_contract() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.by_day(6)
@pytest.mark.parametrize(("module", "statement", "reached"), PLANTED)
def test_import__through_a_wall_is_noticed(
    copy: Path, module: str, statement: str, reached: str
) -> None:
    file = (copy / "ci_bot" / module.replace(".", "/")).with_suffix(".py")
    mark = "from __future__ import annotations\n"
    text = file.read_text("utf-8")
    assert statement not in text
    file.write_text(text.replace(mark, f"{mark}{statement}\n", 1), "utf-8")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert f"- ci_bot.{module} -> {reached}" in " ".join(done.stdout.split())


def test_circle__of_modules_is_noticed(copy: Path) -> None:
    file = copy / "ci_bot/redaction/shapes.py"
    with file.open("a", encoding="utf-8") as out:
        out.write("from ci_bot.redaction import known_secrets\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert "No cycles are allowed in ci_bot.redaction" in done.stdout


def test_contracts__know_every_package(copy: Path) -> None:
    for path in ("stray", "bot/stray", "worker/stray"):
        (copy / "ci_bot" / path).mkdir()
        (copy / "ci_bot" / path / "__init__.py").touch()
        done = lint_imports(copy)
        assert done.returncode != 0, path
        assert "stray" in done.stdout
        shutil.rmtree(copy / "ci_bot" / path)


def test_table__is_what_code_and_contracts_say() -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert page == written(page, table()), "run `python -m tests.architecture`"


def test_table__has_a_row_for_every_package() -> None:
    rows = set(re.findall(r"^\| `([\w.]+)`", table(), re.MULTILINE))
    packages = {
        ".".join(path.parent.relative_to(ROOT / "ci_bot").parts)
        for path in (ROOT / "ci_bot").rglob("*/__init__.py")
    }
    assert packages <= rows


def test_table__follows_the_contracts() -> None:
    contracts = Contracts(
        layers={"ci_bot": [["a"], ["b"], ["c"]], "ci_bot.a": [["x"], ["y"]]},
        protected=[(["ci_bot.b"], ["ci_bot.a.y"]), (["requests"], ["ci_bot.a.x"])],
        forbidden=[(["ci_bot.a.y"], ["ci_bot.c"])],
    )
    assert contracts.below("ci_bot.a") == ["ci_bot.c"], "b is guarded"
    assert contracts.below("ci_bot.a.x") == ["ci_bot.a.y", "ci_bot.c"]
    assert contracts.below("ci_bot.a.y") == [], "c is forbidden, and b is guarded from its parent"
    assert contracts.beside("ci_bot.a.x") == ["requests"]


MOST_FOLDERS_WITH_A_FILE = 3
MODULES = sorted((ROOT / "ci_bot").rglob("*.py"))


def definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each type of a module with what it is: classes anywhere, and the aliases of the module.

    Type variables are left out: they name a type within one signature.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, ast.unparse(node)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, ast.unparse(node.value)
            if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name) and not value.startswith("TypeVar("):
                yield name, value


def with_two_meanings(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The names of types that mean different things in different modules, and where."""
    places: dict[str, dict[str, list[str]]] = {}
    for path, source in sources.items():
        for name, meaning in definitions(ast.parse(source)):
            places.setdefault(name, {}).setdefault(meaning, []).append(path)
    return {
        name: sorted(path for paths in meanings.values() for path in paths)
        for name, meanings in places.items()
        if len(meanings) > 1
    }


def test_types__of_one_name_have_one_meaning() -> None:
    assert not with_two_meanings(
        {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in MODULES}
    )


def test_types__of_two_meanings_are_noticed() -> None:
    found = with_two_meanings(
        {
            "a": "class Ports:\n    x: int\nPair = tuple[int, int]\nOne = Literal['a']",
            "b": "def f():\n    class Ports:\n        y: int\nPair = tuple[int, int]",
            "c": "T = TypeVar('T')\nOne = Literal['b']",
        }
    )
    assert found == {"Ports": ["a", "b"], "One": ["a", "c"]}


def test_file_names__stand_in_few_folders() -> None:
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert not {n: count for n, count in names.items() if count > MOST_FOLDERS_WITH_A_FILE}


def test_scopes_of_sqlglot__are_read_in_one_module() -> None:
    """What they leave open, such as the places in a UNION, is answered there and nowhere else."""
    readers = [path for path in MODULES if "sqlglot.optimizer.scope" in path.read_text("utf-8")]
    assert readers == [ROOT / "ci_bot/worker/sql/selects.py"]


# A comment's record crosses from an earlier run to a later one, both of the bot.
READ_BY_ONE_PROCESS = {"comment"}


def protocol_modules_of(sources: Mapping[str, str], process: str) -> set[str]:
    """The modules of the protocol that a process reads, by way of the protocol's own, too."""
    read = {
        path: set(re.findall(r"^ *from ci_bot\.protocol\.(\w+) import", source, re.MULTILINE))
        for path, source in sources.items()
    }
    found: set[str] = set()
    new = {name for path, names in read.items() if f"ci_bot/{process}/" in path for name in names}
    while new:
        found |= new
        new = {one for name in new for one in read[f"ci_bot/protocol/{name}.py"]} - found
    return found


def test_protocol__is_what_both_processes_read() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in MODULES}
    names = {path.stem for path in MODULES if path.parent.name == "protocol"} - {"__init__"}
    crossing = protocol_modules_of(sources, "bot") & protocol_modules_of(sources, "worker")
    assert names - crossing == READ_BY_ONE_PROCESS


def test_protocol__module_of_one_process_is_noticed() -> None:
    sources = {
        "ci_bot/bot/a.py": "from ci_bot.protocol.plan import Plan\n",
        "ci_bot/worker/b.py": "from ci_bot.protocol.rules import rule\n",
        "ci_bot/protocol/plan.py": "from ci_bot.protocol.base import Contract\n",
        "ci_bot/protocol/rules.py": "    from ci_bot.protocol.base import Contract\n",
        "ci_bot/protocol/base.py": "",
    }
    assert protocol_modules_of(sources, "bot") == {"plan", "base"}
    assert protocol_modules_of(sources, "worker") == {"rules", "base"}


def room_of(module: str) -> str | None:
    """The room that a module belongs to: a package of the bot, of the worker, or of both.

    The protocol is data alone, and each of its modules is public.
    """
    parts = module.split(".")
    if len(parts) < 2 or parts[1:] in (["bot"], ["worker"]) or parts[1] == "protocol":
        return None
    depth = 3 if parts[1:2] in (["bot"], ["worker"]) else 2
    room = "/".join(parts[:depth])
    return ".".join(parts[:depth]) if (ROOT / room / "__init__.py").exists() else None


def imports_past_an_entrance(module: str, source: str) -> list[str]:
    """What a module imports of another room that the room's entrance does not name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("ci_bot."):
            continue
        package = str(node.module)
        room = room_of(package)
        if room is None or room == room_of(module):
            continue
        names = public_names(room)
        found += [
            f"{package}.{alias.name}"
            for alias in node.names
            if package != room or alias.name not in names
        ]
    return found


@functools.cache
def public_names(room: str) -> frozenset[str]:
    return frozenset(names_for_the_type_checker(entrance_of(room)))


def entrance_of(room: str) -> ast.Module:
    return ast.parse((ROOT / room.replace(".", "/") / "__init__.py").read_text("utf-8"))


def names_on_demand(entrance: ast.Module) -> list[str]:
    """What an entrance gives when the program runs: names of its modules, or a module whole."""
    modules: dict[str, list[str]] = {}
    for node in ast.walk(entrance):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "open_on_demand":
            modules = ast.literal_eval(node.args[1])
    return sorted(
        name for module, names in modules.items() for name in (names or [module.rpartition(".")[2]])
    )


def names_for_the_type_checker(entrance: ast.Module) -> list[str]:
    """What an entrance gives to a type checker."""
    return sorted(
        alias.name
        for node in entrance.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    )


def test_rooms__are_entered_by_their_entrance() -> None:
    past = {
        str(path): imports
        for path in MODULES
        if (
            imports := imports_past_an_entrance(
                ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text("utf-8")
            )
        )
    }
    assert not past


def test_import__past_an_entrance_is_noticed() -> None:
    planted = "from ci_bot.worker.sql.spark_sql import x\nfrom ci_bot.worker.sql import spark_sql"
    assert imports_past_an_entrance("ci_bot.worker.rules.run_rules", planted) == [
        "ci_bot.worker.sql.spark_sql.x",
        "ci_bot.worker.sql.spark_sql",
    ]
    assert imports_past_an_entrance("ci_bot.worker.sql.equivalence.keys", planted) == []


def test_entrances__give_each_name_that_they_name() -> None:
    rooms = {room for path in MODULES if (room := room_of(".".join(path.relative_to(ROOT).parts)))}
    assert len(rooms) > 20
    for room in sorted(rooms - {"ci_bot.bot.cli"}):
        package, entrance = importlib.import_module(room), entrance_of(room)
        assert [name for name in names_on_demand(entrance) if not hasattr(package, name)] == []
        assert given_to_one_side_only(room, entrance) == [], room


def given_to_one_side_only(room: str, entrance: ast.Module) -> list[str]:
    """Names that the type checker knows and the program does not, or the other way round.

    Python finds a module of the room without being shown the way.
    """
    names = set(names_on_demand(entrance)) ^ set(names_for_the_type_checker(entrance))
    return [name for name in sorted(names) if importlib.util.find_spec(f"{room}.{name}") is None]


def test_entrance__that_gives_a_name_to_one_side_only_is_noticed() -> None:
    planted = ast.parse(
        "if TYPE_CHECKING:\n    from ci_bot.redaction import shapes\n"
        "    from ci_bot.redaction.shapes import seen, known\n"
        '__getattr__ = open_on_demand(__name__, {"shapes": ["known", "run"]})\n'
    )
    assert given_to_one_side_only("ci_bot.redaction", planted) == ["run", "seen"]


def words_outside(room: str) -> frozenset[str]:
    """Every word of the code that is no part of a room, tests with it."""
    inside = room.replace(".", "/") + "/"
    return frozenset(
        word
        for path, words in words_of_code().items()
        if not path.startswith(inside)
        for word in words
    )


@functools.cache
def words_of_code() -> dict[str, frozenset[str]]:
    return {
        str(path.relative_to(ROOT)): frozenset(re.findall(r"\w+", path.read_text("utf-8")))
        for path in [*MODULES, *(ROOT / "tests").rglob("*.py")]
    }


def test_entrances__name_only_what_others_use() -> None:
    rooms = {room for path in MODULES if (room := room_of(".".join(path.relative_to(ROOT).parts)))}
    unused = {room: sorted(public_names(room) - words_outside(room)) for room in rooms}
    assert not {room: names for room, names in unused.items() if names}


def test_entrance__that_names_what_nobody_uses_is_noticed() -> None:
    assert "make_json_schema_of_contract" in words_outside("ci_bot.redaction")
    assert "_merge_redacted" + "_spans" not in words_outside("ci_bot.redaction")


OF_SQLMESH = frozenset({"s_count", "t_count"})


def unknown_words(docstring: str, package: Path) -> list[str]:
    """Words in backticks that are no module of a package, and nothing that its modules name."""
    modules = [*package.rglob("*.py"), *(ROOT / "ci_bot/protocol").glob("*.py")]
    known = {path.stem for path in modules} | OF_SQLMESH
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                known.add(node.target.id)
            elif isinstance(node, ast.keyword) and node.arg:
                known.add(node.arg)
    return [word for word in re.findall(r"`([a-z]\w*)`", docstring) if word not in known]


def test_entrances__speak_of_modules_that_exist() -> None:
    gone = {
        str(path.relative_to(ROOT)): words
        for path in MODULES
        if path.name == "__init__.py"
        and (
            words := unknown_words(
                ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "", path.parent
            )
        )
    }
    assert not gone


def test_entrance__that_speaks_of_a_module_that_is_gone_is_noticed() -> None:
    assert unknown_words("`shapes` and `twin_shapes`", ROOT / "ci_bot/redaction") == ["twin_shapes"]


def test_coverage__names_modules_that_exist() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    named = settings["tool"]["coverage"]["run"]["source_pkgs"]
    gone = [name for name in named if importlib.util.find_spec(name) is None]
    assert gone == [], "these are measured no more, and nobody would notice"


def test_page__names_files_that_exist() -> None:
    page = PAGE.read_text("utf-8")
    named = re.findall(r"`((?:ci_bot|tests|docs|\.ci)/[\w./]+)`", page)
    assert len(named) > 50
    assert not [path for path in named if not (ROOT / path).exists()]


def test_page__explains_few_words() -> None:
    words = PAGE.read_text("utf-8").partition("\n## Words\n")[2]
    assert 0 < len(re.findall(r"^\| (?!word|-)", words, re.MULTILINE)) <= 25


def test_page__is_read_in_ten_minutes() -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    # The table is looked up, and grows by a row with each package; the text of a picture is drawn.
    read = re.sub(r"```mermaid\n.*?```\n", "", before + rest.partition(END)[2], flags=re.DOTALL)
    assert len(read.splitlines()) <= 195
