"""What the tags of a Jinja template can run. Imported, with Jinja, if a template has changed."""

from __future__ import annotations

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.sandbox import (
    UNSAFE_ASYNC_GENERATOR_ATTRIBUTES,
    UNSAFE_COROUTINE_ATTRIBUTES,
    UNSAFE_FUNCTION_ATTRIBUTES,
    UNSAFE_GENERATOR_ATTRIBUTES,
    UNSAFE_METHOD_ATTRIBUTES,
)

# With the statements that SQLMesh's own environment has.
_ENVIRONMENT = Environment(autoescape=True, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])

_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.NSRef,
    nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Call, nodes.Keyword, nodes.Filter, nodes.Test,
    nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr, nodes.Concat, nodes.CondExpr,
    nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.If, nodes.For, nodes.Assign,
    nodes.AssignBlock, nodes.Macro, nodes.CallBlock, nodes.ExprStmt, nodes.Break, nodes.Continue,
)  # fmt: skip
# Filters that look up no attribute by its name.
_FILTERS = frozenset(
    {"abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "indent", "int",
     "items", "last", "length", "list", "lower", "replace", "reverse", "round", "safe", "string",
     "title", "tojson", "trim", "upper", "as_bool", "as_number", "as_text"}
)  # fmt: skip

_FILTERS_WITHOUT_ATTRIBUTES = frozenset({"join", "max", "min", "sort", "sum", "unique"})
# Objects of dbt by which a template gets at the engine, the context or Python's modules.
_OBJECTS = frozenset(
    {"adapter", "api", "builtins", "context", "dbt", "engine_adapter", "exceptions", "graph",
     "load_result", "model", "modules", "run_query", "self", "statement", "store_raw_result",
     "store_result"}
)  # fmt: skip
# What Jinja's own sandbox refuses, apart from names that begin with an underscore; and methods of a
# text that look up attributes themselves.
_ATTRIBUTES = frozenset(
    UNSAFE_ASYNC_GENERATOR_ATTRIBUTES
    | UNSAFE_COROUTINE_ATTRIBUTES
    | UNSAFE_FUNCTION_ATTRIBUTES
    | UNSAFE_GENERATOR_ATTRIBUTES
    | UNSAFE_METHOD_ATTRIBUTES
    | {"mro", "format", "format_map", "tb_frame", "f_globals", "f_builtins", "f_locals"}
)


_LEXER = Environment(autoescape=True)
_TAG_BEGINS = frozenset({"variable_begin", "block_begin"})
_TAG_ENDS = frozenset({"variable_end", "block_end"})


def list_template_tags(template: str) -> list[list[str]]:
    """Lists the words of each tag; a text that cannot be read counts as one tag."""
    tags: list[list[str]] = []
    inside = False
    try:
        for _, kind, value in _LEXER.lex(template):
            if kind in _TAG_BEGINS:
                tags.append([])
                inside = True
            elif kind in _TAG_ENDS:
                inside = False
            elif inside and kind != "whitespace":
                tags[-1].append(value)
    except TemplateSyntaxError:
        return [[template]]
    return tags


def is_jinja_template_harmless(template: str) -> bool:
    """Whether a template can run only macros and functions that exist already.

    False if it cannot be parsed, or holds a node that the list of allowed ones does not have.
    """
    try:
        tree = _ENVIRONMENT.parse(template)
        return all(_is_harmless(node) for node in [tree, *tree.find_all(nodes.Node)])
    except (TemplateSyntaxError, RecursionError, MemoryError, ValueError):
        return False


def _is_harmless(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Name):
        return node.name not in _OBJECTS and not node.name.startswith("_")
    if isinstance(node, nodes.NSRef | nodes.Getattr):
        return _may_be_read(node.attr)
    if isinstance(node, nodes.Getitem):
        return _may_be_looked_up(node.arg)
    if isinstance(node, nodes.Filter):
        given = len(node.args) + len(node.kwargs)
        return node.name in _FILTERS or (
            # The argument of `join` is put between its parts; those of the others are attributes.
            node.name in _FILTERS_WITHOUT_ATTRIBUTES
            and not node.kwargs
            and given <= (1 if node.name == "join" else 0)
        )
    if isinstance(node, nodes.Call | nodes.Test):
        return node.dyn_args is None and node.dyn_kwargs is None
    return isinstance(node, _NODES)


def _may_be_read(name: str) -> bool:
    return not name.startswith("_") and name not in _ATTRIBUTES


def _may_be_looked_up(key: nodes.Node) -> bool:
    """Whether a key is harmless: if it is no item, it is looked up as an attribute."""
    if isinstance(key, nodes.Slice):
        return True
    if isinstance(key, nodes.Neg):
        key = key.node
    if not isinstance(key, nodes.Const):
        return False
    return _may_be_read(key.value) if isinstance(key.value, str) else isinstance(key.value, int)
