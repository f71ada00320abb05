"""The Jinja environment, which fails safe: what a template prints without a filter is a code span.

Autoescape is on, so Jinja itself keeps apart what a template wrote (`Markup`) from what came in as
data, also through macros; `finalize` then escapes the data for Markdown instead of HTML. The one
way around it, joining strings inside an expression, is forbidden by a test over the templates' AST.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from ci_bot.bot.comment.text import filters, markdown
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.bot.resources import resource

if TYPE_CHECKING:
    from importlib.abc import Traversable


def finalize(value: Any) -> Any:
    """Numbers and Markdown made here pass; every other value becomes a code span."""
    if isinstance(value, SafeMarkdown | Markup | int):
        return value
    return markdown.cell(str(value))


def templates_directory() -> Traversable:
    """Where this installation's templates are."""
    return resource("templates")


def sandbox(
    directory: Traversable, finalize: Callable[[Any], Any] | None = None
) -> SandboxedEnvironment:
    """An environment over one directory. Data is only ever context, never a template's source."""

    def load(name: str) -> str | None:
        source = directory / name
        return source.read_text("utf-8") if source.is_file() else None

    return SandboxedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        finalize=finalize,
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> SandboxedEnvironment:
    """The one environment of comments."""
    created = sandbox(templates_directory(), finalize)
    created.filters |= filters.ESCAPES | filters.SHORTENERS | filters.WORDS
    return created
