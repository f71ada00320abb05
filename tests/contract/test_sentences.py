"""A sentence stands once: nobody mends one of two, and comment, page and terminal say the same.

A sentence is a text of four words or more. Two Python modules share it as a name, Python and
templates through `ci_bot/bot/report/model/sentences.py`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jinja2 import Environment

from tests.architecture import ROOT

WORDS = 4
# The same words may end two f-strings, or stand inside a longer text: fewer are no sentence.
PART_WORDS = 6
# The words of each reason code are what its failures say, in as many words or in the same.
GLOSSARIES = {"ci_bot/protocol/reasons.py"}
# What may stand twice, and why.
ALLOWED: Mapping[str, str] = {
    "no prod was found: everything counts as new": "the worker's note; a form marks `prod` as code",
}

_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
# Beside a sentence of a template.
_WORD_END = re.compile(r"[.,:;!?()]+(?=\s|$)|(?<!\S)\(")
_MARKUP = re.compile(r"[*_`]|</?[a-z][^<>]*>")


def _fold(text: str) -> str:
    """The words of a text, without what marks them and without what ends them."""
    return " ".join(_MARKUP.sub("", text).lower().split()).strip(" .,:;!?()")


def _count_words(text: str) -> int:
    return len(_WORD.findall(re.sub(r"%[A-Za-z]|\{\w*\}", " ", text)))


def list_python_sentences(source: str) -> Iterator[tuple[int, str]]:
    """Each sentence in a module with its line; docstrings are none."""
    tree = ast.parse(source)
    skipped = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in node.values
    }
    formats = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr)
        for value in node.format_spec.values
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) in skipped | formats:
            continue
        least = PART_WORDS if id(node) in parts else WORDS
        if " " in node.value.strip() and _count_words(node.value) >= least:
            yield node.lineno, _fold(node.value)


def list_template_texts(source: str) -> Iterator[tuple[int, str]]:
    """What a template prints by itself, piece by piece."""
    for line, kind, text in Environment(autoescape=True).lex(source):
        if kind == "data":
            yield line, _fold(text)


def find_doubles(
    modules: Mapping[str, str], templates: Mapping[str, str], allowed: Mapping[str, str] = ALLOWED
) -> dict[str, list[str]]:
    """Each sentence that stands in two places, and where.

    Args:
        modules: Python sources by their path.
        templates: Templates by theirs.
    """
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, source in modules.items():
        if path not in GLOSSARIES:
            for line, sentence in list_python_sentences(source):
                places[sentence].append(f"{path}:{line}")
    by_begin: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in places:
        by_begin[_begin_of(_WORD_END.sub("", sentence))].append(sentence)
    for path, source in templates.items():
        for line, text in list_template_texts(source):
            for sentence in _list_sentences_in(text, by_begin):
                places[sentence].append(f"{path}:{line}")
    return {
        sentence: where
        for sentence, where in places.items()
        if len(where) > 1 and sentence not in allowed
    }


def _begin_of(sentence: str) -> str:
    return " ".join(sentence.split()[:WORDS])


def _list_sentences_in(text: str, by_begin: Mapping[str, list[str]]) -> Iterator[str]:
    """Those that a template's text holds. Fewer words inside a longer text are no sentence."""
    plain = _WORD_END.sub("", text)
    words = plain.split()
    begins = {" ".join(words[at : at + WORDS]) for at in range(len(words))}
    for sentence in [one for begin in begins for one in by_begin.get(begin, [])]:
        whole = _WORD_END.sub("", sentence)
        if plain == whole or (len(whole.split()) >= PART_WORDS and f" {whole} " in f" {plain} "):
            yield sentence


def _read_all(folder: str, pattern: str) -> dict[str, str]:
    found = sorted((ROOT / folder).rglob(pattern))
    return {str(path.relative_to(ROOT)): Path(path).read_text("utf-8") for path in found}


def test_sentences__stand_once() -> None:
    doubles = find_doubles(_read_all("ci_bot", "*.py"), _read_all("templates", "*.j2"))
    assert doubles == {}, "\n".join(f"{text!r}: {where}" for text, where in doubles.items())


def test_sentences__that_may_stand_twice_do() -> None:
    doubles = find_doubles(_read_all("ci_bot", "*.py"), _read_all("templates", "*.j2"), {})
    assert ALLOWED.keys() <= doubles.keys(), "an exception that nothing needs any more"


@pytest.mark.parametrize(
    ("modules", "templates"),
    [
        (
            {
                "a.py": 'x = "The plan is not the reviewed one."',
                "b.py": 'y = "the plan is not the reviewed one"',
            },
            {},
        ),
        (
            {"a.py": 'x = "May be half built"'},
            {"t": "{% if y %}**May be\nhalf built** ({{ n }}){% endif %}"},
        ),
        (
            {
                "a.py": 'x = f"{n} rows that cannot be paired with those of prod"\ny = f"{m} rows that cannot be paired with those of prod"'
            },
            {},
        ),
        ({"a.py": 'x = "`prod` stays as it is"'}, {"t": "<b>prod stays as it is</b>"}),
    ],
)
def test_sentence__that_stands_twice_is_noticed(
    modules: dict[str, str], templates: dict[str, str]
) -> None:
    assert len(find_doubles(modules, templates)) == 1


@pytest.mark.parametrize(
    ("modules", "templates"),
    [
        ({"a.py": '"""The plan of a review."""\nx = "The plan of a review."'}, {}),
        ({"a.py": 'x = f"{n} must be at most {m}"', "b.py": 'y = f"{k} must be at most {m}"'}, {}),
        ({"a.py": 'x = f"{t:%Y-%m-%d %H:%M}"', "b.py": 'y = f"{t:%Y-%m-%d %H:%M}"'}, {}),
        ({"a.py": 'x = "from the base branch"'}, {"t": "**From the base branch, not from here**"}),
        ({"a.py": 'x = "built in the environment"'}, {"t": "{# built in the environment #}"}),
        ({"a.py": 'x = "read the report first"'}, {"t": "bread the report first"}),
    ],
)
def test_sentence__that_stands_once_is_none(
    modules: dict[str, str], templates: dict[str, str]
) -> None:
    assert find_doubles(modules, templates) == {}
