"""The code of a model, read without running it: its Python source and its Jinja macros.

In Python source it finds names behind aliases, calls that read the clock or draw random values, and
side effects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jinja2 import Environment

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, PythonModel

# The variables of an interval and of a run, in all of SQLMesh's forms. Their values in a run are
# not those in the load of a project.
RUN_DATES = r"\b(start|end|execution|latest)_(ds|dt|date|ts|tstz|epoch|millis|hour|dtntz)\b"
# It splits templates into their parts, and never renders one.
JINJA_PARSER = Environment(autoescape=True, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])

_CLOCK = frozenset(
    {
        "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today",
        "datetime.date.today", "time.time", "time.time_ns", "time.localtime", "time.gmtime",
        "pandas.Timestamp.now", "pandas.Timestamp.today", "pandas.Timestamp.utcnow",
        "pandas.to_datetime:now", "pendulum.now", "pendulum.today", "arrow.now", "arrow.utcnow",
        "sqlmesh.utils.date.now", "sqlmesh.utils.date.now_ds", "sqlmesh.utils.date.now_timestamp",
        "sqlmesh.utils.date.yesterday", "sqlmesh.utils.date.yesterday_ds",
        "pyspark.sql.functions.current_timestamp", "pyspark.sql.functions.current_date",
        "pyspark.sql.functions.now", "pyspark.sql.functions.localtimestamp",
        "django.utils.timezone.now",
    }
)  # fmt: skip
_RANDOM_MODULES = ("random.", "numpy.random.", "secrets.")
_RANDOM = frozenset(
    {
        "uuid.uuid1", "uuid.uuid4", "os.urandom", "pyspark.sql.functions.rand",
        "pyspark.sql.functions.randn", "pyspark.sql.functions.shuffle",
        "pyspark.sql.functions.uuid",
        "pyspark.sql.functions.monotonically_increasing_id", "faker.Faker",
    }
)  # fmt: skip
_SEEDING = frozenset({"random.seed", "numpy.random.seed", "random.setstate"})
_GENERATORS = frozenset(
    {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState",
     "numpy.random.Generator", "numpy.random.SeedSequence", "numpy.random.PCG64"}
)  # fmt: skip
_SEEDABLE = frozenset({"pyspark.sql.functions.rand", "pyspark.sql.functions.randn"})
_SIDE_EFFECTS = (
    "subprocess.", "os.system", "os.remove", "os.unlink", "os.rename", "os.makedirs", "os.mkdir",
    "os.popen", "os.putenv", "shutil.", "requests.", "httpx.", "urllib.request.", "urllib3.",
    "socket.", "smtplib.", "ftplib.", "boto3.", "paramiko.", "sqlite3.", "psycopg2.", "pymysql.",
    "aiohttp.", "http.client.",
)  # fmt: skip
_ENGINE_WRITES = frozenset(
    {"execute", "create_table", "drop_table", "drop_schema", "create_schema", "drop_view",
     "create_view", "insert_append", "insert_overwrite", "delete_from", "merge", "ctas"}
)  # fmt: skip
# Modules that people import under a short name; the definition's own imports come first.
_USUAL = {
    "pd": "pandas", "np": "numpy", "dt": "datetime", "F": "pyspark.sql.functions",
    "sf": "pyspark.sql.functions",
}  # fmt: skip


def list_jinja_macros(model: Model) -> list[str]:
    """Lists the definitions of the Jinja macros that a SQL model can call."""
    registry = model.jinja_macros
    groups = (registry.root_macros, *registry.packages.values())
    return [macro.definition for group in groups for macro in group.values()]


def map_stored_code_of_model(model: Model) -> dict[str, str]:
    """Maps what a model uses, its functions and variables, to the text that SQLMesh stores."""
    return {name: str(item.payload) for name, item in model.python_env.items()}


def iterate_code_trees(model: Model) -> Iterator[ast.AST]:
    """Yields the code that SQLMesh stores with a model: its function and those that it calls."""
    for item in model.python_env.values():
        if str(getattr(item.kind, "value", item.kind)) != "value":
            tree = parse_python(item.payload)
            if tree is not None:
                yield tree


def parse_python(source: str) -> ast.AST | None:
    """Parses Python source; None if it is no Python, or nested too deeply (`is_too_deep`)."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_too_deep(source: str) -> bool:
    """Whether a text is too deep for Python's own parser, so no rule here has read it."""
    try:
        ast.parse(source)
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        return False
    return False


def map_imports(found: Iterable[ast.AST]) -> dict[str, str]:
    """Maps each local name to the full name that it means."""
    names = dict(_USUAL)
    for tree in found:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    local = alias.asname or alias.name.partition(".")[0]
                    names[local] = alias.name if alias.asname else local
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def iterate_calls(tree: ast.AST, names: dict[str, str]) -> Iterator[tuple[str, ast.Call]]:
    """Yields every call of a dotted name, as the full name and the node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            dotted = _join_dotted_name(node.func)
            if dotted:
                head, _, rest = dotted.partition(".")
                full = names.get(head, head)
                yield (f"{full}.{rest}" if rest else full), node


def _join_dotted_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _join_dotted_name(node.value)
        return f"{inner}.{node.attr}" if inner else None
    return None


def find_clock_calls_in(found: list[ast.AST]) -> list[str]:
    """Finds the calls in Python code that read the clock, each as it is written."""
    names = map_imports(found)
    hits: list[str] = []
    for tree in found:
        for full, call in iterate_calls(tree, names):
            if full in _CLOCK or (full in _PARSERS and _read_first_text(call) in _NOW):
                # time.localtime(x) converts a moment; datetime.now(tz) reads the clock.
                if full in {"time.localtime", "time.gmtime"} and call.args:
                    continue
                hits.append(ast.unparse(call.func))
            elif full.endswith((".fetchdf", ".spark.sql", ".sql")) and _find_sql_clock(call):
                hits.append(_find_sql_clock(call))
    return hits


# These parse a text, and read the clock if the text is "now" or "today".
_PARSERS = frozenset({"pandas.to_datetime", "pandas.Timestamp", "numpy.datetime64"})
_NOW = frozenset({"now", "today"})
_SQL_CLOCKS = ("current_timestamp", "current_date", "now()", "getdate()")


def _read_first_text(call: ast.Call) -> str | None:
    if call.args and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value).lower()
    return None


def _find_sql_clock(call: ast.Call) -> str:
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lowered = node.value.lower()
            for word in _SQL_CLOCKS:
                if word in lowered and f"'{word}" not in lowered:
                    return word
    return ""


def find_random_calls_in(found: list[ast.AST]) -> list[str]:
    """Finds the calls in Python code whose result is random, as `find_clock_calls_in` does."""
    names = map_imports(found)
    calls = [item for tree in found for item in iterate_calls(tree, names)]
    seeded = {
        full.rpartition(".")[0]
        for full, call in calls
        if full in _SEEDING and call.args and not _is_none(call.args[0])
    }
    hits: list[str] = []
    for full, call in calls:
        if full in _SEEDING:
            continue
        if full in _GENERATORS:
            if not call.args and not call.keywords:
                hits.append(ast.unparse(call.func))
            continue
        module = full.rpartition(".")[0]
        if full in _SEEDABLE and (call.args or call.keywords):
            continue
        if (
            full in _RANDOM
            or (full.startswith(_RANDOM_MODULES) and module not in seeded)
            or (
                full.endswith(".sample")
                and not _has_keyword(call, "random_state", "seed", "withReplacement")
            )
        ):
            hits.append(ast.unparse(call.func))
    return hits


def _find_first_function(source: str | None) -> ast.FunctionDef | None:
    tree = parse_python(source) if source is not None else None
    nodes = ast.walk(tree) if tree is not None else ()
    return next((node for node in nodes if isinstance(node, ast.FunctionDef)), None)


def _list_names_used_by_function(
    function: ast.FunctionDef, context: type[ast.expr_context]
) -> set[str]:
    """Lists the names that a function's statements use in one way: to read, or to set."""
    return {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def list_unused_edges(model: PythonModel) -> list[str]:
    """Lists start and end if a Python model's function does not use them; empty if in doubt."""
    stored = model.python_env.get(model.entrypoint)
    function = _find_first_function(stored.payload) if stored is not None else None
    if function is None:
        return []
    used = _list_names_used_by_function(function, ast.Load)
    rest = function.args.kwarg.arg if function.args.kwarg is not None else None
    if rest in used or "locals" in used:
        return []
    # The moment of the run also counts as an end.
    known = {"start": {"start"}, "end": {"end", "execution_time"}}
    return [edge for edge, names in known.items() if not used & names]


def reads_argument(model: PythonModel, name: str) -> bool:
    """Whether the function of a Python model reads the argument `name`."""
    stored = model.python_env.get(model.entrypoint)
    function = _find_first_function(stored.payload) if stored is not None else None
    return function is not None and name in _list_names_used_by_function(function, ast.Load)


def find_environment_reads(model: Model) -> list[str]:
    """Finds the environment variables that the code stored with a model reads, by name.

    A name that is not a literal text is listed as `…`.
    """
    found = list(iterate_code_trees(model))
    names = map_imports(found)
    read: list[str] = []
    for tree in found:
        for full, call in iterate_calls(tree, names):
            if full in {"os.getenv", "os.environ.get", "os.environ.pop", "os.environ.setdefault"}:
                read.append(_read_literal_text(call.args[0] if call.args else None))
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                dotted = _join_dotted_name(node.value) or ""
                head, _, rest = dotted.partition(".")
                if (f"{names.get(head, head)}.{rest}" if rest else names.get(head)) == "os.environ":
                    read.append(_read_literal_text(node.slice))
    return list(dict.fromkeys(read))


def _read_literal_text(node: ast.AST | None) -> str:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if is_text and isinstance(node, ast.Constant) else "…"


def is_signal_always_ready(source: str | None) -> bool:
    """Whether a signal lets every interval through: it returns True, or its whole batch."""
    function = _find_first_function(source)
    if function is None:
        return False
    batch = function.args.args[0].arg if function.args.args else None
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    changed = _list_names_used_by_function(function, ast.Store)
    return bool(returned) and all(
        (isinstance(value, ast.Constant) and value.value is True)
        or (isinstance(value, ast.Name) and value.id == batch and batch not in changed)
        for value in returned
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _has_keyword(call: ast.Call, *keywords: str) -> bool:
    return any(item.arg in keywords for item in call.keywords)


def is_pure_macro(source: str | None) -> bool:
    """Whether a macro's text shows that its result depends only on its arguments.

    The macro is one function. It names only its parameters, its own variables, and builtins that
    compute. It does not use its first parameter, SQLMesh's evaluator, which knows the time and the
    environment.
    """
    tree = parse_python(source) if source is not None else None
    if not isinstance(tree, ast.Module) or [type(node) for node in tree.body] != [ast.FunctionDef]:
        return False
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    arguments = function.args
    if any(isinstance(node, _REACHES_OUT) for part in function.body for node in ast.walk(part)):
        return False
    if not all(isinstance(value, ast.Constant) for value in arguments.defaults):
        return False
    given = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][1:]
    given += [one.arg for one in arguments.kwonlyargs]
    given += [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]
    names = [n for part in function.body for n in ast.walk(part) if isinstance(n, ast.Name)]
    bound = {*given, *(name.id for name in names if isinstance(name.ctx, ast.Store))}
    attributes = (
        n.attr for part in function.body for n in ast.walk(part) if isinstance(n, ast.Attribute)
    )
    return all(name.id in bound or name.id in _COMPUTES for name in names) and not any(
        name.startswith("_") for name in attributes
    )


_REACHES_OUT = (
    ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip
_COMPUTES = frozenset(
    {"abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list",
     "max", "min", "range", "reversed", "round", "sorted", "str", "sum", "tuple", "zip", "True",
     "False", "None", "ValueError"}
)  # fmt: skip


def find_side_effects(tree: ast.AST) -> list[str]:
    """Finds calls that do more than compute a value: files, network, processes, the engine."""
    names = map_imports([tree])
    hits: list[str] = []
    for full, call in iterate_calls(tree, names):
        if full.startswith(_SIDE_EFFECTS) and not full.startswith("os.path"):
            hits.append(full)
        elif full == "open" and _is_file_write(call):
            hits.append("open(…, 'w')")
        elif ".engine_adapter." in full and full.rpartition(".")[2] in _ENGINE_WRITES:
            hits.append(full)
    return hits


def _is_file_write(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    for keyword in call.keywords:
        if keyword.arg == "mode":
            mode = keyword.value
    return isinstance(mode, ast.Constant) and any(flag in str(mode.value) for flag in "wax+")
