"""Which differences of a text are only how a version of Python writes the same code."""

from __future__ import annotations

import pytest

from ci_bot.worker.planning.reworded_code import describe_reworded_code, is_same_python_code

# What Python 3.11 and older write, and Python 3.12 and newer.
SAME = {
    "nested quotes": (
        """def f(d):\n    return f"{d['a']}\"""",
        """def f(d):\n    return f'{d['a']}'""",
    ),
    "two on a line, beside text of several bytes": (
        """x = 'é', f"{d['ü']} {d['b']}", f"{e['c']}\"""",
        """x = 'é', f'{d['ü']} {d['b']}', f'{e['c']}'""",
    ),
    "with a prefix": ("""x = rf"{d['a']}\"""", """x = rf'{d['a']}'"""),
    "spaces and brackets, as another writer has them": ("x = lambda : (1)", "x = lambda: 1"),
}
OTHER = {
    "another key": ("""x = f"{d['a']}\"""", """x = f'{d['b']}'"""),
    "a quote in the text of an f-string": (
        """x = f"{d['a']} it's\"""",
        """x = f'{d['a']} it"s'""",
    ),
    "a quote in another string": (
        """x = f"{d['a']}\", "'\"""",
        """x = f'{d['a']}', "\"\"""",
    ),
    "no f-string at all": ("""x = d['a']""", """x = d['a\""""),
    "another value": ("x = 1", "x = 2"),
    "neither is read": ("x = (", "x = ["),
    "another length": ("""x = f"{d['a']}\"""", """x = f'{d['ab']}'"""),
}


@pytest.mark.parametrize("name", SAME)
def test_same_code__is_told(name: str) -> None:
    one, other = SAME[name]
    assert one != other
    assert is_same_python_code(one, other)
    assert is_same_python_code(other, one)


@pytest.mark.parametrize("name", OTHER)
def test_other_code__is_not_taken_for_the_same(name: str) -> None:
    one, other = OTHER[name]
    assert not is_same_python_code(one, other)
    assert not is_same_python_code(other, one)


def test_note__names_the_python_that_helps() -> None:
    told = describe_reworded_code(["b.b", "a.a"], "3.11.7")
    assert "`a.a` and 1 more" in told
    assert "Build prod with Python 3.11," in told
