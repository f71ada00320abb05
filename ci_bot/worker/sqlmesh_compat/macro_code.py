"""What Python a macro may make from SQL.

SQLMesh turns an argument of `@EVAL`, `@IF`, `@FILTER`, `@WITH`, `@JOIN`, `@WHERE`, `@GROUP_BY`,
`@HAVING`, `@ORDER_BY`, `@LIMIT`, `@UNION` and `@SQL`, and what a macro of the project hands to
`evaluator.eval_expression`, into Python source and evaluates it (`MacroEvaluator.eval_expression`,
`MacroDialect`). The text of the SQL gets into that source unescaped, in many ways:

- a quote ends a string of Python: in a quoted identifier that of `exp.to_column('...')`, in a
  macro's name that of `self.send('...')`, in a path into JSON that of `['...']`;
- a function after a dot keeps its name: `exp.eval('...')` calls `eval`;
- types, units, parameters of lambdas and `EXTRACT` paste their words;
- `EXTRACT(__globals__ FROM f)` reads any attribute, and `ARRAY_ANY(x, f)` calls any object;
- another macro, `@{...}` or a variable of the configuration may make any of these.

So this module judges the Python itself, whatever made it, and allows only constants, plain names,
operators, and calls of functions that SQLMesh offers or the project defines. Ordinary SQL never
becomes any other Python, and no project can rely on it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp
from sqlglot.executor.env import ENV
from sqlmesh.core import dialect as d
from sqlmesh.core import macros

from ci_bot.worker.messages import MacroRefusedError

# The date parts that `EXTRACT` may take: the fields that Spark, PostgreSQL, DuckDB, BigQuery and
# Snowflake document. Python's `getattr` would give every other attribute of any object.
_DATE_PARTS = frozenset(
    """
    year y years yr yrs yearofweek yearofweekiso yearweek isoyear quarter qtr quarters
    month mon mons months week w weeks weekofyear weekiso isoweek week_iso
    day d days dayofweek dow dayofweek_iso dayofweekiso dow_iso isodow dayofyear doy dayofmonth
    weekday weekday_iso hour h hours hr hrs minute m min mins minutes second s sec secs seconds
    millisecond milliseconds ms microsecond microseconds us nanosecond nanoseconds ns
    date time datetime era julian decade century millennium
    epoch epoch_second epoch_millisecond epoch_microsecond epoch_nanosecond
    timezone timezone_hour timezone_minute timezone_abbr timezone_region
    """.split()  # noqa: SIM905 - a list would be one word a line
)

_OPERATORS = (ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)

_PLAIN = (
    ast.Expression, ast.Constant, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp,
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript, ast.Slice,
    ast.Lambda, ast.arguments, ast.arg,
    *_OPERATORS,
)  # fmt: skip

_TYPES = re.compile(r"exp(\.(DType|DataType|Type))+\.[A-Z][A-Z0-9_]*")
_PARSED_AS = re.compile(r"exp\.[A-Z]\w*")
# `CAST(x AS INT)` of a division becomes `int(...)`, `DISTINCT` becomes `set(...)`.
CONVERTERS = frozenset({"int", "set"})
_BUILT_IN = frozenset(dir(builtins))
_ITS_OWN = frozenset({"self", "exp", "MacroEvaluator"})
_LONGEST_SHOWN = 60

MayCall = Callable[[str], bool]


def is_no_function_of_python(name: str) -> bool:
    """Whether a name is no function of Python: it is SQLMesh's, the project's, or unknown."""
    return name in CONVERTERS or name not in _BUILT_IN | _ITS_OWN


def find_objection_to_macro_code(
    source: str, may_call: MayCall = is_no_function_of_python, *, may_read: bool = False
) -> str | None:
    """Finds what Python made from SQL does besides computing.

    Source that is not valid Python is harmless: it fails before any of it runs.

    Args:
        may_call: Whether a function of that name may be called.
        may_read: Whether any name may be read. SQL has columns of any name, and a macro could call
            what such a name means in Python only if it is evaluated.

    Returns:
        The first objection, as a clause of a message; None if there is none.
    """
    try:
        # As `eval` reads it: it skips blanks before an expression.
        tree = compile(source.lstrip(" \t"), "<macro>", "eval", ast.PyCF_ONLY_AST)
        return next(_SqlmeshMacroJudge(may_call, may_read).find_objections(tree, frozenset()), None)
    except (SyntaxError, ValueError):
        return None
    except (RecursionError, MemoryError):
        return "it is nested too deeply to be judged"


class _SqlmeshMacroJudge:
    """The check of a tree, depth first."""

    def __init__(self, may_call: MayCall, may_read: bool) -> None:
        self._may_call = may_call
        self._may_read = may_read

    def find_objections(self, node: ast.AST, bound: frozenset[str]) -> Iterator[str]:
        """Yields objections; `bound` are the parameters of the enclosing lambdas."""
        if isinstance(node, ast.Call):
            yield from self._find_call_objections(node, bound)
        elif isinstance(node, ast.Name):
            if not (self._may_read or node.id in bound) and (
                node.id in _BUILT_IN | _ITS_OWN or _is_private_name(node.id)
            ):
                yield f"Python's `{node.id}` is read"
        elif isinstance(node, ast.Attribute):
            if not _TYPES.fullmatch(_render_dotted_name(node)):
                yield f"the attribute `{node.attr[:_LONGEST_SHOWN]}` is read"
        elif not isinstance(node, _PLAIN):
            yield f"there is Python ({type(node).__name__})"
        else:
            if isinstance(node, ast.Lambda):
                bound |= {argument.arg for argument in node.args.args}
            for child in ast.iter_child_nodes(node):
                yield from self.find_objections(child, bound)

    def _find_call_objections(self, call: ast.Call, bound: frozenset[str]) -> Iterator[str]:
        name = _render_dotted_name(call.func)
        arguments: list[ast.AST] = list(call.args)
        if name == "self.parse_one":
            arguments += [word for word in call.keywords if not _is_kind_that_macro_parses(word)]
        elif call.keywords:
            yield f"`{name[:_LONGEST_SHOWN]}` is called with Python's keywords"
            return
        elif name == "self.template":
            if len(arguments) != 2 or ast.dump(arguments.pop()) != _LOCALS:  # noqa: PLR2004 - text, locals()
                yield "a template is filled with other variables"
                return
        elif name in {"self.send", "exp.to_column"}:
            if not _is_text_that_macro_parses(arguments) or (
                name == "exp.to_column" and len(arguments) != 1
            ):
                yield "an identifier holds Python"
                return
        elif name == "DOT":
            # `a.b(1)` is read as an index; plain names in it are looked up and never called.
            arguments = [part for part in arguments if not _is_plain_name(part)]
        elif (why := self._find_refusal(call, name, bound)) is not None:
            yield why
            return
        for argument in arguments:
            yield from self.find_objections(argument, bound)

    def _find_refusal(self, call: ast.Call, name: str, bound: frozenset[str]) -> str | None:
        if isinstance(call.func, ast.Constant) or _TYPES.fullmatch(name):
            return None  # fails, because nothing of that kind can be called
        if name == "EXTRACT":
            first = call.args[0] if call.args else None
            known = isinstance(first, ast.Constant) and first.value in _DATE_PARTS
            return None if known else "`EXTRACT` takes more than a part of a date"
        if name == "ARRAYANY":
            lambdas = all(isinstance(argument, ast.Lambda) for argument in call.args[1:])
            return None if lambdas else "`ARRAY_ANY` calls what is no lambda"
        plain = isinstance(call.func, ast.Name) and name not in bound and not _is_private_name(name)
        if plain and self._may_call(name):
            return None
        return f"`{name[:_LONGEST_SHOWN] or 'an expression'}` is called"


def _is_kind_that_macro_parses(word: ast.keyword) -> bool:
    """Whether a keyword is like `into=exp.Select`, which says what a text is parsed as."""
    return word.arg == "into" and bool(_PARSED_AS.fullmatch(_render_dotted_name(word.value)))


def _is_text_that_macro_parses(arguments: list[ast.AST]) -> bool:
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str)


def _is_plain_name(part: ast.AST) -> bool:
    return isinstance(part, ast.Name) and not _is_private_name(part.id)


def _is_private_name(name: str) -> bool:
    return name.startswith("__")


def _render_dotted_name(node: ast.AST) -> str:
    """Renders `a.b.c` as it is written; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _render_dotted_name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


_LOCALS = ast.dump(ast.parse("locals()", mode="eval").body)


# The one place where SQLMesh's macro evaluator evaluates Python that it made from SQL.


def guard_sqlmesh_macro_evaluation() -> None:
    """Makes the macros of this process evaluate only Python that ordinary SQL can become.

    Call it before anything of a project is loaded. A process that loads nothing has checked the
    text of the changed files before, and reports file and line. But another macro, a template or a
    variable of the configuration may make an argument, and only here is its final form known. So
    the Python is judged at the moment when it would run, whatever made it. A file of the base
    branch that does the same is refused, too; ordinary SQL never makes such Python.

    (`MacroEvaluator.eval_expression` in `core/macros.py` calls `eval`, which it looks up in its own
    module first.)
    """
    macros.eval = _evaluate_judged_macro_source  # type: ignore[attr-defined]


def _evaluate_judged_macro_source(
    source: Any, variables: dict[str, object], local_variables: dict[str, object]
) -> Any:
    def may_call(name: str) -> bool:
        found = local_variables.get(name, variables.get(name))
        if found is None:
            # A name that is not registered is allowed unless Python itself has it.
            return name in CONVERTERS or not hasattr(builtins, name)
        return found is ENV.get(name) or getattr(found, "__globals__", None) is variables

    objection = (
        find_objection_to_macro_code(source, may_call)
        if isinstance(source, str)
        else "there is no text"
    )
    if objection is not None:
        raise MacroRefusedError(objection)
    return builtins.eval(source, variables, local_variables)  # noqa: S307 - it was judged above


# Which parts of a parsed text SQLMesh hands to Python when it evaluates the macros in it.
#
# Only `MacroEvaluator.eval_expression` makes Python from SQL. From its own macros, SQLMesh hands
# over the condition of `@IF`, `@WITH`, `@JOIN`, `@WHERE`, `@GROUP_BY`, `@HAVING`, `@ORDER_BY` and
# `@LIMIT`, and no argument of `@AND`, `@OR`, `@EACH` and `@REDUCE`; their other arguments stay SQL
# (`core/macros.py`). Everything in an evaluated argument is evaluated with it, macros too. Each
# argument of any other macro, above all of a project's own, counts as evaluated.


_ONLY_THE_CONDITION = frozenset(
    {"IF", "WITH", "JOIN", "WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT"}
)

_NOTHING = frozenset({"AND", "OR"})
_BY_A_LAMBDA = frozenset({"EACH", "REDUCE"})


def list_parts_that_sqlmesh_evaluates(root: Any, *, own_macros: bool = False) -> Iterator[Any]:
    """Yields the largest parts of a tree that become Python as a whole.

    Args:
        root: The tree that SQLMesh's parser made from a text.
        own_macros: Whether the text defines macros, which may have any name.
    """
    todo = [root]
    while todo:
        part = todo.pop()
        if not isinstance(part, d.MacroFunc):
            todo += reversed(list(part.iter_expressions()))
            continue
        arguments = part.this.expressions if isinstance(part.this, exp.Anonymous) else None
        if arguments is None:
            yield part
            continue
        yield _strip_macro_arguments(part)
        count = len(arguments)
        if not own_macros:
            count = _count_evaluated_macro_arguments(part.this.name.upper(), arguments)
        yield from arguments[:count]
        todo += reversed(arguments[count:])


def _strip_macro_arguments(macro: Any) -> Any:
    """Returns a macro without its arguments; inside another macro, its name becomes Python."""
    name = macro.this.this
    return d.MacroFunc(this=exp.Anonymous(this=name if isinstance(name, str) else name.copy()))


def _count_evaluated_macro_arguments(name: str, arguments: list[Any]) -> int:
    """Counts a macro's arguments that are evaluated, from the first one on."""
    if any(isinstance(argument, exp.PropertyEQ) for argument in arguments):
        return len(arguments)
    if name in _NOTHING:
        return 0
    if name in _ONLY_THE_CONDITION and arguments:
        # A macro in place of the condition may give nothing; then the next argument moves up.
        return len(arguments) if isinstance(arguments[0], d.MacroFunc) else 1
    if name in _BY_A_LAMBDA and arguments and isinstance(arguments[-1], exp.Lambda):
        # A macro in the lambda gets the arguments that the lambda is called with.
        runs_others = any(argument.find(d.MacroFunc) for argument in arguments)
        return len(arguments) if runs_others else 0
    return len(arguments)
