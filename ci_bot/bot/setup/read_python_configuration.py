"""What the text of a `config.py` says, read from its syntax tree and never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_CONNECTION_CLASS = re.compile(r"(\w+)ConnectionConfig")
_READERS = frozenset({"getenv", "os.getenv", "environ.get", "os.environ.get"})
_MAPPINGS = frozenset({"environ", "os.environ"})


@dataclass(frozen=True)
class VariableUse:
    """A variable where it is read: under which settings, in which gateway."""

    name: str
    path: tuple[str, ...]
    gateway: str | None
    has_default: bool
    is_required: bool


@dataclass
class PythonFacts:
    """What a file says; see `Configuration`."""

    gateways: tuple[str, ...] = ()
    default_gateway: str | None = None
    engines: list[tuple[str | None, str]] = field(default_factory=list)
    states: list[tuple[str | None, str]] = field(default_factory=list)
    uses: list[VariableUse] = field(default_factory=list)
    bot_keys: tuple[str, ...] = ()


def read_python(text: str) -> PythonFacts | None:
    """What the file says; None if it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    facts = PythonFacts()
    names = _map_assignments(tree)
    loads = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    used = {node.id for node in loads if isinstance(node.ctx, ast.Load)}
    try:
        for statement in tree.body:
            # What a name stands for is read where the name is used.
            if not (
                isinstance(statement, ast.Assign)
                and _find_assigned_name(statement) in used & names.keys()
            ):
                _visit_node(statement, (), None, facts, names)
    except RecursionError:
        return None
    return facts


def _map_assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """What the names of the module stand for, where each is set once: `state = Postgres…(…)`."""
    found: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and (name := _find_assigned_name(node)):
            found.setdefault(name, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _find_assigned_name(statement: ast.Assign) -> str:
    """The one name that a statement sets; empty for anything else."""
    target = statement.targets[0]
    return target.id if len(statement.targets) == 1 and isinstance(target, ast.Name) else ""


def _visit_node(
    node: ast.AST,
    path: tuple[str, ...],
    gateway: str | None,
    facts: PythonFacts,
    names: dict[str, ast.expr],
) -> None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        # Read again where it is used; without the name, so that nothing goes round in circles.
        rest = {name: value for name, value in names.items() if name != node.id}
        _visit_node(names[node.id], path, gateway, facts, rest)
        return
    use = _read_variable(node, path, gateway)
    if use is not None:
        facts.uses.append(use)
        return
    if isinstance(node, ast.Call):
        _note_call(node, path, gateway, facts)
        for argument in node.args:
            _visit_node(argument, path, gateway, facts, names)
        for keyword in node.keywords:
            name = keyword.arg or ""
            if name == "gateways" and isinstance(keyword.value, ast.Dict):
                for key, value in _iterate_entries(keyword.value):
                    facts.gateways = (*facts.gateways, key)
                    _visit_node(value, ("gateways", key), key, facts, names)
            else:
                _visit_node(keyword.value, (*path, name), gateway, facts, names)
        return
    if isinstance(node, ast.Dict):
        for key, value in _iterate_entries(node):
            _visit_node(value, (*path, key) if key else path, gateway, facts, names)
        return
    for child in ast.iter_child_nodes(node):
        _visit_node(child, path, gateway, facts, names)


def _note_call(
    node: ast.Call, path: tuple[str, ...], gateway: str | None, facts: PythonFacts
) -> None:
    name = _dotted_name(node.func).rpartition(".")[2]
    connection = _CONNECTION_CLASS.fullmatch(name)
    if connection is not None:
        target = facts.states if "state_connection" in path else facts.engines
        if "test_connection" not in path and "default_test_connection" not in path:
            target.append((gateway, _derive_engine_name(connection[1])))
    for keyword in node.keywords:
        if keyword.arg == "default_gateway" and isinstance(keyword.value, ast.Constant):
            facts.default_gateway = str(keyword.value.value)
        if keyword.arg == "cicd_bot" and isinstance(keyword.value, ast.Call):
            facts.bot_keys = tuple(each.arg or "" for each in keyword.value.keywords)


def _derive_engine_name(class_name: str) -> str:
    """`postgres` of `PostgresConnectionConfig`, `gcp_postgres` of `GCPPostgres…`."""
    known = {"DuckDB": "duckdb", "MySQL": "mysql", "MSSQL": "mssql", "BigQuery": "bigquery"}
    return (
        known.get(class_name)
        or re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
    )


def _iterate_entries(node: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        yield str(key.value) if isinstance(key, ast.Constant) else "", value


def _read_variable(node: ast.AST, path: tuple[str, ...], gateway: str | None) -> VariableUse | None:
    """The variable that exactly this expression reads."""
    if isinstance(node, ast.Subscript) and _dotted_name(node.value) in _MAPPINGS:
        if isinstance(node.slice, ast.Constant) and isinstance(node.ctx, ast.Load):
            return VariableUse(str(node.slice.value), path, gateway, False, True)
    elif isinstance(node, ast.Call) and _dotted_name(node.func) in _READERS and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant):
            has_default = len(node.args) + len(node.keywords) > 1
            return VariableUse(str(name.value), path, gateway, has_default, False)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        first = _read_variable(node.values[0], path, gateway)
        if first is not None:
            return VariableUse(first.name, path, gateway, True, first.is_required)
    return None


def _dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
