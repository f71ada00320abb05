"""Which changed files hold code that runs on load."""

from __future__ import annotations

import pytest

from ci_bot.decision import ChangedFile, code_that_runs_on_load

PROJECTS = ["analytics"]


def is_code(path: str, before: str | None, after: str | None, *, read: bool = True) -> bool:
    file = ChangedFile(
        path,
        None if before is None else before.encode(),
        None if after is None else after.encode(),
        read=read,
    )
    return code_that_runs_on_load([file], PROJECTS) == [path]


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("analytics/macros/m.py", "x = 1", "x = 2", True),
        ("analytics/macros/m.py", None, "x = 2", True),
        ("analytics/macros/m.py", "x = 1", None, True),
        ("analytics/config.py", "x = 1", "x = 2", True),
        ("analytics/linter/rules.py", "x = 1", "x = 2", True),
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
        ("analytics/models/m.sql", "SELECT 1", "SELECT {{ x() }}", True),
        ("analytics/models/m.sql", "SELECT {{ x() }}", "SELECT {{ x() }} + 1", False),
        (
            "analytics/macros/m.sql",
            "{% macro a() %}1{% endmacro %}",
            "{% macro b() %}1{% endmacro %}",
            True,
        ),
        ("analytics/config.yaml", "a: 1", "a: 2", False),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A', 'b') }}\"", False),
        ("analytics/config.yaml", "a: 1", "a: \"{{ env_var('A') }}\"", False),
        ("analytics/config.yaml", "a: 1", 'a: "{{ env_var(x) }}"', True),
        ("analytics/config.yaml", "a: 1", "a: \"{{ ''.__class__ }}\"", True),
        ("analytics/config.yaml", "a: 1", "{% if True %}a: 1{% endif %}", True),
        ("analytics/seeds/s.csv", "a", "b", False),
        ("analytics/README.md", "{{ a() }}", "{{ b() }}", False),
        ("other/config.py", "x = 1", "x = 2", False),
        ("requirements.txt", "a", "b", True),
        ("analytics/requirements-dev.txt", "a", "b", True),
        ("pyproject.toml", "a", "b", True),
        ("sqlmesh-requirements.lock", "a", "b", True),
    ],
)
def test_code_on_load(path: str, before: str | None, after: str | None, expected: bool) -> None:
    assert is_code(path, before, after) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("analytics/macros/m.py", True),
        ("analytics/models/m.sql", True),
        ("analytics/config.yaml", True),
        ("analytics/seeds/s.csv", False),
    ],
)
def test_code_on_load__what_could_not_be_read_counts(path: str, expected: bool) -> None:
    assert is_code(path, None, None, read=False) is expected


def test_code_on_load__a_project_at_the_root() -> None:
    file = ChangedFile("config.py", b"x = 1", b"x = 2")

    assert code_that_runs_on_load([file], ["."]) == ["config.py"]
