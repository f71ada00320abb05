"""Why foreign code did not load: exceptions that Python really raised, and what reports say of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlmesh import Context
from sqlmesh.core.config.connection import MSSQLConnectionConfig
from sqlmesh.utils.errors import ConfigError

from ci_bot.protocol.base import Failure
from ci_bot.worker.messages.problems import extract_sentence_of_error, make_failure_of_error

Load = Callable[..., Failure]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports `start` of a tree as SQLMesh would, and gives the failure."""
    root = tmp_path / "checkout"
    root.mkdir()
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.chdir(root)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("macros", "models")]:
        monkeypatch.delitem(sys.modules, name)  # another test's project
    known = set(sys.modules)

    def act(start: str, **files: str) -> Failure:
        for name, text in files.items():
            file = root / name.replace("__", "/").replace("_py", ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        importlib.invalidate_caches()
        with pytest.raises(BaseException) as caught:
            try:
                importlib.import_module(start)
            except Exception as error:
                # SQLMesh hands on the text, and keeps the rest as the context.
                raise RuntimeError(f"Failed to load: {error}")  # noqa: B904
        return make_failure_of_error(
            caught.value, stage="load", repository=root, hint="the default"
        )

    yield act
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_missing_package__names_the_file_that_imports_it_and_the_input(load: Load) -> None:
    told = load("macros.tests.test_x", macros__tests__test_x_py='"""Tests."""\nimport py_test_9\n')
    assert (
        told.message == "`macros/tests/test_x.py` imports `py_test_9`, which is not installed here."
    )
    assert (told.path, told.line) == ("macros/tests/test_x.py", 2)
    assert "`requirements`" in str(told.hint)
    assert told.reason_code == "missing_module"


def test_missing_module__that_lies_elsewhere_in_the_checkout__names_its_directory(
    load: Load,
) -> None:
    told = load(
        "models.raw",
        models__raw_py="import blueprint_maker\n",
        models__parts__blueprint_maker_py="",
    )
    assert "is not on the search path" in told.message
    assert told.hint is not None
    assert "`models/parts`" in told.hint
    assert "`python-path`" in told.hint


def test_missing_module__of_a_package_that_the_checkout_has__is_not_blamed_on_the_path(
    load: Load,
) -> None:
    told = load("models.raw", models__raw_py="import helpers9.gone\n", helpers9__kept_py="")
    assert (
        told.message
        == "`models/raw.py` imports `helpers9.gone`, and there is no such module in `.`."
    )
    assert told.hint == "the default"


def test_missing_package__that_an_installed_package_needs__says_needs(
    load: Load, tmp_path: Path
) -> None:
    packages = tmp_path / "site-packages"
    (packages / "outer9").mkdir(parents=True)
    (packages / "outer9" / "__init__.py").write_text("import inner_9\n")
    sys.path.append(str(packages))
    told = load("models.raw", models__raw_py="import outer9\n")
    assert told.message == "`models/raw.py` needs `inner_9`, which is not installed here."


def test_missing_name__of_an_installed_package__names_the_version_as_the_cause(load: Load) -> None:
    told = load("config9", config9_py="from sqlmesh.core.config import AirflowSchedulerConfig9\n")
    assert "imports `AirflowSchedulerConfig9` from `sqlmesh.core.config`" in told.message
    assert "the installed version of `sqlmesh`" in told.message
    assert "Pin the version of `sqlmesh`" in str(told.hint)
    assert (told.path, told.line) == ("config9.py", 1)


def test_missing_name__of_the_project_s_own_module__keeps_python_s_words(load: Load) -> None:
    told = load("a9", a9_py="from b9 import gone\n", b9_py="")
    assert "cannot import name 'gone' from 'b9' (b9.py)" in told.message
    assert (told.path, told.line) == ("a9.py", 1)


def test_missing_variable__is_named_with_the_input_that_passes_it(load: Load) -> None:
    told = load("config9", config9_py="import os\n\nPASSWORD = os.environ['NO_SUCH_9']\n")
    assert told.message == "`config9.py` needs the variable `NO_SUCH_9`, which is not set here."
    assert "`worker-env`" in str(told.hint)
    assert told.line == 3


def test_key_error__of_another_mapping__is_no_missing_variable(load: Load) -> None:
    told = load("config9", config9_py="SETTINGS = {}\nSETTINGS['NO_SUCH_9']\n")
    assert "variable" not in told.message
    assert (told.path, told.line, told.hint) == ("config9.py", 2, "the default")


def test_missing_file__of_a_relative_path__says_where_it_was_looked_for(load: Load) -> None:
    told = load("models.raw", models__raw_py="from pathlib import Path\nPath('./no.yaml').open()\n")
    assert told.message == (
        "`models/raw.py` opens `no.yaml`, and there is no such file below the root of the checkout."
    )
    assert "`Path(__file__).parent`" in str(told.hint)
    assert told.line == 2


def test_syntax_error__names_its_own_file_and_line(load: Load) -> None:
    told = load("models.raw", models__raw_py="import b9\n", b9_py="x = 1\ny = (\n")
    assert (told.path, told.line) == ("b9.py", 2)


def test_input__is_named_for_what_it_is(tmp_path: Path) -> None:
    # In a process of its own, whose standard input is closed as the worker's is.
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from ci_bot.worker.messages.problems import make_failure_of_error\n"
        "root = Path(sys.argv[1])\nsys.path.insert(0, str(root))\n"
        "try:\n    import config9\nexcept EOFError as error:\n"
        "    print(make_failure_of_error(error, stage='load', repository=root).to_json())\n"
    )
    (tmp_path / "config9.py").write_text("NAME = 1\nANSWER = input('Password? ')\n")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    told = Failure.model_validate_json(done.stdout.removeprefix("Password? "))
    assert told.message.startswith("`config9.py` asks for input while it is loaded")
    assert (told.line, told.reason_code) == (2, "asks_for_input")


def test_failure__of_what_no_cause_is_known_for__keeps_its_words_without_private_paths(
    tmp_path: Path,
) -> None:
    error = RuntimeError(f"Duplicate model in '{tmp_path}/models/a.sql' at {tmp_path}")
    told = make_failure_of_error(error, stage="load", repository=tmp_path)
    assert told.message == "Duplicate model in 'models/a.sql' at ."
    assert told.path == "models/a.sql"


def failure_of_gateway(driver: str, root: Path) -> Failure:
    """What is said of a gateway whose library SQLMesh itself cannot import."""
    with pytest.raises(Exception, match="engine library") as caught:
        MSSQLConnectionConfig(type="mssql", host="db", driver=driver)
    return make_failure_of_error(
        caught.value, stage="configuration", repository=root, hint="the default"
    )


@pytest.mark.parametrize(("driver", "extra"), [("pymssql", "mssql"), ("pyodbc", "mssql-odbc")])
def test_missing_library_of_a_gateway__names_sqlmesh_s_own_extra(
    driver: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)  # Python's own way to say that there is none
    told = failure_of_gateway(driver, tmp_path)
    assert f"`{driver}`, whose Python library is not installed here" in told.message
    assert told.hint == f"Add `sqlmesh[{extra}]` to the file that the input `requirements` names."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "libodbc.so.2: cannot open shared object file: No such file or directory",
            "is installed, and the system's `libodbc.so.2` that it needs is not.",
        ),
        (
            "cannot import name 'x' from 'y' (/opt/y.py)",
            "is installed, and cannot be imported: cannot import name 'x' from 'y'.",
        ),
    ],
)
def test_library_of_a_gateway__that_is_there_and_does_not_load__is_not_called_missing(
    said: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pyodbc", raising=False)
    (tmp_path / "pyodbc.py").write_text(f"raise ImportError({said!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = failure_of_gateway("pyodbc", tmp_path / "elsewhere")
    assert expected in told.message
    assert "sqlmesh[" not in str(told.hint)


@pytest.mark.parametrize(
    ("call", "shown"),
    [("sys.exit(0)", "`sys.exit(0)`"), ("sys.exit()", "`sys.exit()`"), ("exit(3)", "exit(3)")],
)
def test_exit__is_no_message_but_an_end_of_the_process(load: Load, call: str, shown: str) -> None:
    told = load("macros.late", macros__late_py=f"import sys\n{call}\n")
    assert told.message.startswith("`macros/late.py` ends the process")
    assert shown in told.message
    assert (told.path, told.line, told.reason_code) == ("macros/late.py", 2, "ends_the_process")
    assert "__main__" in str(told.hint)


def test_exit__with_words__keeps_them(load: Load) -> None:
    told = load("macros.late", macros__late_py="import sys\nsys.exit('set REGION first')\n")
    assert told.message.endswith("while it is loaded: set REGION first")


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ValueError(1), "ValueError: 1"),
        (ValueError(), "ValueError"),
        (ValueError("-"), "ValueError: -"),
        (KeyError("orders"), "KeyError: 'orders'"),
        (ValueError("REGION is not set"), "REGION is not set"),
        (ValueError("größe"), "größe"),
    ],
)
def test_sentence__of_an_exception_without_words__says_what_it_is(
    raised: Exception, message: str
) -> None:
    assert extract_sentence_of_error(raised) == message


@pytest.mark.parametrize(
    "cause", ["BlockingIOError(errno.EAGAIN, 'x')", 'RuntimeError("can\'t start new thread")']
)
def test_process__that_could_not_be_started__is_named_for_what_it_is(
    load: Load, cause: str
) -> None:
    told = load("macros.storm", macros__storm_py=f"import errno\nraise {cause}\n")
    assert (told.path, told.line, told.reason_code) == ("macros/storm.py", 2, "no_more_processes")
    assert told.message.endswith("are in use while `macros/storm.py` is loaded.")


def test_file__that_would_block__is_no_lack_of_processes(load: Load) -> None:
    raised = "BlockingIOError(errno.EAGAIN, 'it would block', 'x.fifo')"
    told = load("macros.storm", macros__storm_py=f"import errno\nraise {raised}\n")
    assert told.reason_code != "no_more_processes"


def fail_to_load_project(root: Path) -> Failure:
    """Loads a project with SQLMesh itself, and gives the failure."""
    (root / "config.yaml").write_text(
        "model_defaults:\n  dialect: spark\ngateways:\n  local:\n    connection:\n"
        "      type: duckdb\n"
    )
    with pytest.raises(ConfigError) as caught:
        Context(paths=[str(root)])
    return make_failure_of_error(caught.value, stage="load", repository=root, hint="the default")


def write_model(root: Path, file: str, content: bytes) -> None:
    (root / "models").mkdir(exist_ok=True)
    (root / "models" / file).write_bytes(content)


def test_model_file__that_is_not_in_utf_8__names_line_byte_and_fix(tmp_path: Path) -> None:
    write_model(
        tmp_path,
        "b.sql",
        "MODEL (name demo.b);\nSELECT\n  'café' AS drink".encode("latin-1"),
    )
    failure = fail_to_load_project(tmp_path)
    assert failure.message == "`models/b.sql` is not a text in UTF-8: it has the byte 0xe9."
    assert (failure.path, failure.line) == ("models/b.sql", 3)
    assert "`iconv -f latin1 -t utf-8 models/b.sql`" in str(failure.hint)


@pytest.mark.parametrize("name", ["demo.a", "Demo.A", "`demo`.`a`"])
def test_model__that_two_files_declare__names_both(tmp_path: Path, name: str) -> None:
    write_model(tmp_path, "a.sql", b"MODEL (name demo.a, kind FULL);\nSELECT 1 AS id")
    write_model(
        tmp_path, "c.sql", f"MODEL (\n  kind FULL,\n  name {name}\n);\nSELECT 2 AS id".encode()
    )
    write_model(tmp_path, "d.sql", b"MODEL (name demo.a_daily);\nSELECT 1 AS id")
    failure = fail_to_load_project(tmp_path)
    assert "Two files declare the model `" in failure.message
    assert "`models/a.sql` and `models/c.sql`" in failure.message
    assert failure.hint == "Give one of them another name, or delete it."
