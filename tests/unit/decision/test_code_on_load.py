"""Which changed files hold code that ran on load."""

from __future__ import annotations

import pytest

from ci_bot.bot.decision import (
    JudgedFile,
    is_possible_risk_of_code_on_load,
    list_risky_code_on_load,
)
from ci_bot.bot.decision.code_on_load import LONGEST_PARSED_BYTES, MOST_PARSED_BYTES

PROJECTS = ["analytics"]


def is_code(
    path: str,
    before: str | None,
    after: str | None,
    *,
    read: bool = True,
    opened: bool | None = True,
) -> bool:
    """Whether a changed file counts; `opened` None: nobody knows."""
    file = JudgedFile(
        path,
        None if before is None else before.encode(),
        None if after is None else after.encode(),
        read=read,
    )
    loaded = None if opened is None else frozenset({path} if opened else ())
    return list_risky_code_on_load([file], loaded, PROJECTS) == [path]


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("analytics/macros/m.py", "x = 1", "x = 2", True),
        ("analytics/macros/m.py", None, "x = 2", True),
        ("analytics/config.py", "x = 1", "x = 2", True),
        ("analytics/linter/rules.py", "x = 1", "x = 2", True),
        ("shared/helper.py", "x = 1", "x = 2", True),
        ("conftest.py", None, "x = 1", True),
        ("sitecustomize.py", None, "x = 1", True),
        ("analytics/helper.abi3.so", None, "\x7fELF", True),
        ("analytics/helper.pyd", None, "MZ", True),
        ("analytics/__pycache__/helper.cpython-311.pyc", None, "...", True),
        ("vendored/lib.zip", "a", "b", True),
        ("vendored/lib.egg", "a", "b", True),
        ("analytics/extra.pth", None, "import os", True),
        ("analytics/rates.pkl", "a", "b", True),
        ("analytics/.env", "A=1", "A=2", True),
        ("analytics/settings.toml", "a = 1", "a = 2", True),
        ("analytics/file_without_ending", "a", "b", True),
        ("analytics/models/m.py", "x = 1  # one", "x = 1  # uno", False),
        ("analytics/models/m.py", '"""One."""\nx = 1', '"""Uno.\n\nDue."""\nx = 1', False),
        (
            "analytics/models/m.py",
            "def f():\n    '''One.'''\n    return 1",
            "def f():\n    return 1",
            False,
        ),
        ("analytics/models/m.py", "def f():\n    return 1", "def f():\n    return 2", True),
        ("analytics/models/m.py", "x = (", "x = ( 1", True),
        ("analytics/models/m.py", "x = 'a'", "# -*- coding: latin-1 -*-\nx = 'a'", False),
        ("analytics/models/m.py", "x = 'ä'", "# -*- coding: latin-1 -*-\nx = 'ä'", True),
        ("analytics/models/m.sql", "SELECT 1", "SELECT 2", False),
        ("analytics/models/m.sql", "SELECT 1", "SELECT @IF(@x, 1, 2)", False),
        ("analytics/models/m.sql", "SELECT 1", "SELECT {{ x() }}", False),
        ("analytics/models/m.sql", "SELECT 1", "SELECT {{ x._y() }}", True),
        ("analytics/models/m.sql", "SELECT {{ x._y() }}", "SELECT {{ x._y() }} + 1", False),
        ("analytics/models/m.sql", "SELECT {{ x._y() }}", "SELECT {{ x._y(  ) }}", False),
        ("analytics/models/m.sql", "SELECT {{ '}}' ~ 1 }}", "SELECT {{ '}}' ~ x._y() }}", True),
        ("analytics/models/m.sql", "SELECT '{#' {{ x._y() }}", "SELECT '{#' {{ y._y() }}", True),
        ("analytics/models/m.sql", "SELECT '{#'", "SELECT '{#', 1", False),
        ("analytics/models/m.sql", "{% raw %}{{ a._b }}{% endraw %}", "{{ a._b }}", True),
        (
            "analytics/macros/m.sql",
            "{% macro a() %}1{% endmacro %}",
            "{% macro b() %}1{% endmacro %}",
            False,
        ),
        ("analytics/config.yaml", "a: 1", "a: 2", False),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A', 'b') }}\"", False),
        ("analytics/config.yaml", "a: 1", "a: \"{{- env_var('A') -}}\"", False),
        ("analytics/config.yaml", "a: 1", 'a: "{{ env_var(x) }}"', False),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A') ~ x._y() }}\"", True),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A', x._y()) }}\"", True),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A')[x()] }}\"", True),
        ("analytics/config.yaml", "a: 1", "a: \"{{ ''.__class__ }}\"", True),
        ("analytics/config.yaml", "a: 1", "{% if True %}a: 1{% endif %}", False),
        ("analytics/seeds/s.csv", "a", "b", False),
        ("analytics/seeds/s.csv", "a", "{{ b() }}", False),
        ("analytics/README.md", "a", "b", False),
        ("analytics/docs.md", "{% docs a %}", "{% docs b %}", True),
    ],
)
def test_opened_on_load__is_code_unless_it_is_data(
    path: str, before: str | None, after: str | None, expected: bool
) -> None:
    assert is_code(path, before, after) is expected


@pytest.mark.parametrize(
    "path",
    [
        "dags/daily.py",
        "services/api/models.py",
        "analytics/scripts/tool.py",
        "analytics/tests/conftest.py",
        "services/api/pyproject.toml",
        "dbt/models/m.sql",
        "lib/native.so",
    ],
)
def test_never_opened__is_no_code_on_load(path: str) -> None:
    assert not is_code(path, "{{ a._a() }}", "{{ b._b() }}", opened=False)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("dags/daily.py", True),
        ("lib/native.so", True),
        ("vendored/lib.whl", True),
        (".env", True),
        ("analytics/models/m.sql", True),
        ("analytics/config.yaml", True),
        ("analytics/seeds/s.csv", False),
        ("README.md", False),
        ("Dockerfile", False),
        ("LICENSE", False),
    ],
)
def test_nothing_known_of_the_load__every_changed_file_of_code_counts(
    path: str, expected: bool
) -> None:
    assert is_code(path, "{{ a._a() }}", "{{ b._b() }}", opened=None) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("requirements.txt", True),
        ("pyproject.toml", True),
        ("sqlmesh-requirements.lock", True),
        ("analytics/requirements-dev.txt", True),
        ("services/api/requirements.txt", False),
        ("analytics/sub/requirements.txt", True),
    ],
)
def test_requirements__of_the_project_count_where_nothing_is_known(
    path: str, expected: bool
) -> None:
    assert is_code(path, "a", "b", opened=None) is expected


def test_requirements__that_were_not_installed__are_no_code_on_load() -> None:
    assert not is_code("analytics/requirements.txt", "a", "b", opened=False)
    assert is_code("analytics/requirements.txt", "a", "b", opened=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("analytics/macros/m.py", True),
        ("analytics/models/m.py", True),
        ("dags/daily.py", False),
        ("analytics/models/m.sql", False),
    ],
)
def test_deleted__a_module_of_the_project_changes_what_runs(path: str, expected: bool) -> None:
    assert is_code(path, "{{ a() }}", None, opened=False) is expected
    assert (
        is_possible_risk_of_code_on_load(path, deleted=True, loaded=frozenset(), projects=PROJECTS)
        is expected
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("analytics/macros/m.py", True),
        ("analytics/models/m.sql", True),
        ("analytics/config.yaml", True),
        ("analytics/seeds/s.csv", False),
    ],
)
def test_opened_on_load__what_could_not_be_read_counts(path: str, expected: bool) -> None:
    assert is_code(path, None, None, read=False) is expected


def test_requirements__of_a_project_at_the_root() -> None:
    file = JudgedFile("requirements.txt", b"a", b"b")

    assert list_risky_code_on_load([file], None, ["."]) == ["requirements.txt"]


@pytest.mark.parametrize(
    ("path", "named", "loaded", "expected"),
    [
        ("analytics/hello.py", False, False, False),
        ("analytics/hello.py", True, False, True),
        # Loaded from the base: whatever names it, it was used.
        ("analytics/hello.py", False, True, True),
        ("analytics/macros/hello.py", False, False, True),
        ("analytics/lib/__init__.py", False, False, True),
        ("analytics/config.py", False, False, True),
    ],
)
def test_deleted__module_that_nothing_names_is_missed_by_nobody(
    path: str, named: bool, loaded: bool, expected: bool
) -> None:
    file = JudgedFile(path, b"import os\nos.getcwd()", None)
    opened = frozenset({path} if loaded else ())
    found = list_risky_code_on_load([file], opened, PROJECTS, lambda word, _: named)
    assert found == ([path] if expected else [])


@pytest.mark.parametrize(
    "source",
    ["x = " + "-" * 100_000 + "1", "x = " + "lambda: " * 5_000 + "1",
     "x = " + "not " * 1_500 + "1", "x = 1" + "+ 1" * 60_000,
     "x = f" + "()" * 50_000, "x = a" + ".b" * 50_000],
    ids=["minus", "lambda", "not", "plus", "calls", "attributes"],
)  # fmt: skip
def test_python__that_is_nested_too_deeply__counts_and_breaks_nothing(source: str) -> None:
    assert is_code("analytics/macros/m.py", "x = 1", source)


def test_files__that_take_long_to_parse__count_unparsed() -> None:
    """The process that asks is bounded by nothing but this."""
    large = b"# comment\n" * (LONGEST_PARSED_BYTES // 10 + 1)
    one = JudgedFile("analytics/macros/a.py", b"x = 1\n", b"x = 1\n" + large)
    small = b"# comment\n" * (LONGEST_PARSED_BYTES // 20)
    many = [
        JudgedFile(f"analytics/macros/b{number:03}.py", b"x = 1\n", b"x = 1\n" + small)
        for number in range(MOST_PARSED_BYTES // len(small) + 2)
    ]
    loaded = frozenset(file.path for file in [one, *many])

    assert list_risky_code_on_load([one], loaded, PROJECTS) == [one.path]
    unused = JudgedFile(one.path, None, b"def f():\n    return 1\n" + large)
    nowhere = list_risky_code_on_load([unused], loaded, PROJECTS, lambda *_: False)
    assert nowhere == [one.path], "what was not looked at may do more than define"
    counted = list_risky_code_on_load(many, loaded, PROJECTS)
    assert 0 < len(counted) < 5, "comments alone are no change, as far as they are looked at"
