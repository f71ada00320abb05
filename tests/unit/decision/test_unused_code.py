"""What a Python file may hold so that nothing but definitions of it have run."""

from __future__ import annotations

import pytest

from ci_bot.bot.decision import JudgedFile, list_risky_code_on_load
from ci_bot.bot.decision.code_on_load import list_names_defined_by_judged_code

MACRO = '''\
"""Units."""

from __future__ import annotations

import typing as t

from sqlmesh import macro


@macro()
def miles_to_km(evaluator, miles: t.Optional[str] = None) -> str:
    """Statute miles."""
    return f"({miles}) * 1.609344"
'''


def test_defined__of_a_macro_is_its_name() -> None:
    assert list_names_defined_by_judged_code(MACRO.encode()) == {"miles_to_km"}


def test_defined__under_another_name_is_both() -> None:
    named = MACRO.replace("@macro()", '@macro("KM")')
    assert list_names_defined_by_judged_code(named.encode()) == {"miles_to_km", "KM"}


def test_defined__of_a_plain_function_is_its_name() -> None:
    assert list_names_defined_by_judged_code(
        b"import os\n\n\ndef here():\n    return os.getcwd()\n"
    ) == {"here"}


@pytest.mark.parametrize(
    "source",
    [
        MACRO + "\nprint('loaded')\n",
        MACRO + "\nRATE = open('x').read()\n",
        MACRO.replace("@macro()", "@macro(print('x'))"),
        MACRO.replace("@macro()", "@other()"),
        MACRO.replace("@macro()", "@macro"),
        MACRO.replace("@macro()", "@macro().__class__()"),
        MACRO.replace("= None", "= print('x')"),
        MACRO.replace("miles: t.Optional[str]", "miles: print('x')"),
        MACRO.replace("-> str", "-> [print(x) for x in 'ab']"),
        MACRO.replace("from sqlmesh import macro", "from units import macro"),
        MACRO.replace(
            "from sqlmesh import macro", "from sqlmesh import macro\nfrom units import *"
        ),
        MACRO.replace("from sqlmesh import macro", "from sqlmesh import model as macro"),
        MACRO + "\ndef macro(*a):\n    return print\n",
        MACRO + "\nclass A(print('x')):\n    pass\n",
        MACRO + "\nif True:\n    pass\n",
        MACRO + "\nasync def f():\n    pass\n",
        "def broken(:\n",
        "\0",
    ],
)
def test_defined__is_not_known_of_what_may_run_more(source: str) -> None:
    assert list_names_defined_by_judged_code(source.encode()) is None


def test_code__that_is_only_defined_and_used_nowhere_did_not_run() -> None:
    file = JudgedFile("macros/units.py", None, MACRO.encode())
    loaded = frozenset({file.path})
    asked: list[tuple[str, str]] = []

    def nowhere(word: str, path: str) -> bool:
        asked.append((word, path))
        return False

    assert list_risky_code_on_load([file], loaded, ["."], nowhere) == []
    assert asked == [("miles_to_km", file.path)]
    assert list_risky_code_on_load([file], loaded, ["."], lambda *_: True) == [file.path]
    assert list_risky_code_on_load([file], loaded, ["."]) == [file.path]


def test_code__that_was_used_before_it_changed_ran() -> None:
    old = MACRO.replace("miles_to_km", "km")
    file = JudgedFile("macros/units.py", old.encode(), MACRO.encode())
    used = list_risky_code_on_load(
        [file], frozenset({file.path}), ["."], lambda word, _: word == "km"
    )
    assert used == [file.path]


def test_code__that_is_gone_may_have_been_used() -> None:
    file = JudgedFile("macros/units.py", MACRO.encode(), None)
    assert list_risky_code_on_load([file], frozenset(), ["."], lambda *_: False) == [file.path]
