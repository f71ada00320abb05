"""What templates may not do, read from their syntax trees, and how they are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError, nodes
from jinja2.exceptions import SecurityError

from ci_bot.bot.report.markdown import templating
from ci_bot.bot.report.markdown.comments import (
    Document,
    prepare_review_comment,
    render_markdown_text,
)
from ci_bot.bot.report.markdown.templating import (
    finalize_value,
    find_directory_of_comment_templates,
    get_environment_of_comment_templates,
)
from ci_bot.bot.report.model.sentences import list_view_sentences_for_templates
from ci_bot.protocol.comment import Phase
from ci_bot.resources import find_directory
from tests.factories import make_apply, make_context
from tests.golden.samples import report
from tests.reports import full_report
from tests.unit.report.dom import parse

REPORTS = ("base_branch", "destructive_change", "failed_plan", "forward_only_reader", "wide_change")
NAMES = sorted(
    item.name
    for item in find_directory_of_comment_templates().iterdir()
    if item.name.endswith(".j2")
)
PRINTING = templating.ESCAPES.keys() | templating.WORDS.keys()
# Values that the Python side made: finished pieces, labels of our own vocabulary, plain integers.
MADE_BY_US = {"later", "text", "word", "outcome", "state_schema", "number", "window"} | {
    # `SafeMarkdown` of `data_words`; `finalize` would make a code span of anything else.
    *("heading", "sentence", "model_name", "what_changed", "rows_changed", "how", "told"),
    *("here", "icon", "label", "legend", "what_does_not_load"),
    "commit",  # a link of `CommentLinks`
}


def _tree(name: str) -> nodes.Template:
    return get_environment_of_comment_templates().parse(
        (find_directory_of_comment_templates() / name).read_text("utf-8")
    )


def _printed(name: str) -> list[nodes.Expr]:
    return [
        expression
        for output in _tree(name).find_all(nodes.Output)
        for expression in output.nodes
        if not isinstance(expression, nodes.TemplateData)
    ]


def _is_sentence(expression: nodes.Getattr) -> bool:
    return isinstance(expression.node, nodes.Name) and expression.node.name == "sentences"


@pytest.mark.parametrize("name", NAMES)
def test_template__prints_nothing_raw(name: str) -> None:
    for expression in _printed(name):
        if isinstance(expression, nodes.Filter):
            assert expression.name in PRINTING, f"{name}: |{expression.name}"
        elif isinstance(expression, nodes.Getattr) and _is_sentence(expression):
            assert expression.attr in list_view_sentences_for_templates(), (
                f"{name}: {expression.attr}"
            )
        elif isinstance(expression, nodes.Getattr):
            assert expression.attr in MADE_BY_US, f"{name}: {expression.attr}"
        elif isinstance(expression, nodes.Name):
            assert expression.name in MADE_BY_US, f"{name}: {expression.name}"
        else:
            # A macro of ours, or a link: `m.glance(v)`, `links.commit(sha)`.
            assert isinstance(expression, nodes.Call), f"{name}: {expression}"


@pytest.mark.parametrize("name", NAMES)
def test_template__joins_no_strings_and_marks_nothing_safe(name: str) -> None:
    tree = _tree(name)
    for forbidden in (nodes.Concat, nodes.Mod, nodes.MarkSafe, nodes.ScopedEvalContextModifier):
        assert not list(tree.find_all(forbidden)), f"{name}: {forbidden.__name__}"
    for used in tree.find_all(nodes.Filter):
        assert used.name not in ("safe", "format", "join", "replace", "forceescape"), used.name
    for added in tree.find_all(nodes.Add):
        parts = [added.left, added.right]
        assert all(isinstance(part, nodes.Getattr | nodes.Add | nodes.Filter) for part in parts)


def test_every_state_has_its_template() -> None:
    for phase in Phase.__args__:  # type: ignore[attr-defined]
        assert f"{phase}.md.j2" in NAMES


def test_environment__a_forgotten_filter_fails_safe() -> None:
    source = "{{ x }} {% macro m(y) %}{{ y }}{% endmacro %}{{ m(x) }} {{ 3 }}"
    text = get_environment_of_comment_templates().from_string(source).render(x="a|b` <img>")
    assert text == "``a\\|b` <img>`` ``a\\|b` <img>`` 3"


def test_environment__an_undefined_name_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        get_environment_of_comment_templates().from_string("{{ missing }}").render()


def test_environment__is_sandboxed() -> None:
    with pytest.raises(SecurityError):
        get_environment_of_comment_templates().from_string("{{ x.__class__.__mro__ }}").render(x=1)


def test_finalize__floats_and_other_types_are_data() -> None:
    assert finalize_value(3) == 3
    assert finalize_value(0.5) == "`0.5`"
    assert finalize_value(["@a"]) == "`['@a']`"


def test_find__the_installed_ones_come_first(tmp_path: Path) -> None:
    package, checkout = tmp_path / "site" / "ci_bot", tmp_path / "checkout"
    package.mkdir(parents=True)
    assert find_directory(package, checkout, "templates") == checkout / "templates"
    (package / "templates").mkdir()
    assert find_directory(package, checkout, "templates") == package / "templates"


def test_templates__are_found_in_a_checkout() -> None:
    assert Path(str(find_directory_of_comment_templates())).name == "templates"
    assert "planned.md.j2" in NAMES


@pytest.mark.parametrize("document", [full_report(), *map(report, REPORTS), make_apply()])
def test_complete_report__shows_no_markup_of_its_own(document: Document) -> None:
    """A line right below a closed part belongs to its HTML: GitHub shows its asterisks as they are."""
    page = parse(render_markdown_text(document, make_context()))
    assert not [text for text in page.plain if "**" in text or "](" in text]


@pytest.mark.parametrize("name", ["base_branch", "destructive_change", "wide_change"])
def test_prepared_comment__compiles_nothing_more_when_there_is_a_review(name: str) -> None:
    cache = get_environment_of_comment_templates().cache
    assert cache is not None
    cache.clear()
    prepare_review_comment()
    prepared = set(cache.keys())
    assert prepared
    render_markdown_text(report(name), make_context(phase="planned"))
    assert set(cache.keys()) == prepared
