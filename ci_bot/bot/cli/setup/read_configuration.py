"""Reads the text of a SQLMesh configuration: gateways, connections, and the variables it uses.

Nothing is rendered or run. YAML is read as nodes, with each Jinja expression kept as one word, and
a `config.py` as a syntax tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ci_bot.jinja_text import BLOCK, EXPRESSION, REMARK, list_templates, replace_templates
from ci_bot.yaml_reader import MappingNode, Node, ScalarNode, SequenceNode, UnfitYaml, compose_yaml

_CONNECTION_CLASS = re.compile(r"(\w+)ConnectionConfig")
_READERS = frozenset({"getenv", "os.getenv", "environ.get", "os.environ.get"})
_MAPPINGS = frozenset({"environ", "os.environ"})


@dataclass(frozen=True)
class SetupVariableUse:
    """A place where a variable is read: under which settings, in which gateway."""

    name: str
    path: tuple[str, ...]
    gateway: str | None
    has_default: bool
    is_required: bool


@dataclass
class PythonFactsForSetup:
    """What a file says; see `SetupProjectConfiguration`."""

    gateways: tuple[str, ...] = ()
    default_gateway: str | None = None
    engines: list[tuple[str | None, str]] = field(default_factory=list)
    states: list[tuple[str | None, str]] = field(default_factory=list)
    uses: list[SetupVariableUse] = field(default_factory=list)
    bot_keys: tuple[str, ...] = ()


def read_python_facts(text: str) -> PythonFactsForSetup | None:
    """Reads what the file says; None if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    facts = PythonFactsForSetup()
    names = _map_assignments(tree)
    loads = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    used = {node.id for node in loads if isinstance(node.ctx, ast.Load)}
    try:
        for statement in tree.body:
            # The value of a name is read where the name is used.
            if not (
                isinstance(statement, ast.Assign)
                and _find_name_assigned(statement) in used & names.keys()
            ):
                _visit_python_config_node(statement, (), None, facts, names)
    except RecursionError:
        return None
    return facts


def _map_assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """Maps names of the module to their values, if each is set once: `state = Postgres…(…)`."""
    found: dict[str, list[ast.expr]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and (name := _find_name_assigned(node)):
            found.setdefault(name, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _find_name_assigned(statement: ast.Assign) -> str:
    """Returns the one name that a statement sets; empty for anything else."""
    target = statement.targets[0]
    return target.id if len(statement.targets) == 1 and isinstance(target, ast.Name) else ""


def _visit_python_config_node(
    node: ast.AST,
    path: tuple[str, ...],
    gateway: str | None,
    facts: PythonFactsForSetup,
    names: dict[str, ast.expr],
) -> None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        # Its value is read again in this place, without the name itself, so that this cannot loop.
        rest = {name: value for name, value in names.items() if name != node.id}
        _visit_python_config_node(names[node.id], path, gateway, facts, rest)
        return
    use = _read_variable(node, path, gateway)
    if use is not None:
        facts.uses.append(use)
        return
    if isinstance(node, ast.Call):
        _note_python_config_call(node, path, gateway, facts)
        for argument in node.args:
            _visit_python_config_node(argument, path, gateway, facts, names)
        for keyword in node.keywords:
            name = keyword.arg or ""
            if name == "gateways" and isinstance(keyword.value, ast.Dict):
                for key, value in _iterate_python_dictionary_entries(keyword.value):
                    facts.gateways = (*facts.gateways, key)
                    _visit_python_config_node(value, ("gateways", key), key, facts, names)
            else:
                _visit_python_config_node(keyword.value, (*path, name), gateway, facts, names)
        return
    if isinstance(node, ast.Dict):
        for key, value in _iterate_python_dictionary_entries(node):
            _visit_python_config_node(value, (*path, key) if key else path, gateway, facts, names)
        return
    for child in ast.iter_child_nodes(node):
        _visit_python_config_node(child, path, gateway, facts, names)


def _note_python_config_call(
    node: ast.Call, path: tuple[str, ...], gateway: str | None, facts: PythonFactsForSetup
) -> None:
    name = _read_dotted_name(node.func).rpartition(".")[2]
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
    """Returns `postgres` for `PostgresConnectionConfig`, `gcp_postgres` for `GCPPostgres…`."""
    known = {"DuckDB": "duckdb", "MySQL": "mysql", "MSSQL": "mssql", "BigQuery": "bigquery"}
    return (
        known.get(class_name)
        or re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
    )


def _iterate_python_dictionary_entries(node: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        yield str(key.value) if isinstance(key, ast.Constant) else "", value


def _read_variable(
    node: ast.AST, path: tuple[str, ...], gateway: str | None
) -> SetupVariableUse | None:
    """Returns the variable that exactly this expression reads; None if it reads none."""
    if isinstance(node, ast.Subscript) and _read_dotted_name(node.value) in _MAPPINGS:
        if isinstance(node.slice, ast.Constant) and isinstance(node.ctx, ast.Load):
            return SetupVariableUse(str(node.slice.value), path, gateway, False, True)
    elif isinstance(node, ast.Call) and _read_dotted_name(node.func) in _READERS and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant):
            has_default = len(node.args) + len(node.keywords) > 1
            return SetupVariableUse(str(name.value), path, gateway, has_default, False)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        first = _read_variable(node.values[0], path, gateway)
        if first is not None:
            return SetupVariableUse(first.name, path, gateway, True, first.is_required)
    return None


def _read_dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_read_dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


# What a variable is for: the state database, the warehouse, or anything else.
VariablePurpose = Literal["state", "warehouse", "other"]

_CALL = re.compile(r"""env_var\(\s*(?P<quote>['"])(?P<name>\w+)(?P=quote)\s*(?P<default>,)?""")
# Nobody writes this character by hand; the number is the index of the expression.
_MARK = re.compile(r"\u2400(\d+)\u2400")
_CONNECTIONS = ("connection", "test_connection", "default_connection", "default_test_connection")
_STATE = "state_connection"
# Engines in which SQLMesh keeps its state if the configuration has no state connection.
_ENGINES_WITH_STATE = frozenset({"duckdb", "postgres", "mysql", "mssql", "gcp_postgres"})


@dataclass(frozen=True)
class SetupConfigVariable:
    """A variable of the environment that a configuration reads.

    Attributes:
        key: The setting that gets its value, such as `password`; empty if that is unknown.
        gateway: The gateway that it belongs to; None if it belongs to all.
        has_default: Whether the configuration has a value for the case that it is not set.
        is_required: Whether the configuration fails to load without it, as `os.environ["X"]` does.
    """

    name: str
    scope: VariablePurpose
    key: str = ""
    gateway: str | None = None
    has_default: bool = False
    is_required: bool = False


@dataclass(frozen=True)
class SetupProjectConfiguration:
    """What the files of one project say.

    Attributes:
        default_gateway: The one that is used if none is named.
        engines: The type of each gateway's connection.
        states: The type of each gateway's state connection, if there is one.
        bot_keys: The keys under `cicd_bot:`.
        is_whole: Whether all of it could be read.
    """

    gateways: tuple[str, ...] = ()
    default_gateway: str | None = None
    engines: tuple[tuple[str, str], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    variables: tuple[SetupConfigVariable, ...] = ()
    bot_keys: tuple[str, ...] = ()
    is_whole: bool = True

    def engine_type(self, gateway: str | None) -> str | None:
        """Returns the type of a gateway's connection; None if it is not written."""
        return _read_gateway_fact(self.engines, gateway)

    def find_state_type(self, gateway: str | None) -> str | None:
        """Finds the type of a gateway's state: its state connection's, or that of its engine."""
        written = _read_gateway_fact(self.states, gateway)
        engine = self.engine_type(gateway)
        return written or (engine if engine in _ENGINES_WITH_STATE else None)

    def list_variables_of(self, gateway: str | None) -> list[SetupConfigVariable]:
        """Lists the variables that matter if this gateway is used, each once, by name.

        Without a state connection the state is in an engine that can hold one.
        """
        in_engine = (
            _read_gateway_fact(self.states, gateway) is None
            and self.find_state_type(gateway) is not None
        )
        found: dict[str, SetupConfigVariable] = {}
        for variable in self.variables:
            elsewhere = variable.gateway not in (None, gateway)
            if elsewhere and not variable.is_required:
                continue
            mine = replace(variable, scope="other") if elsewhere else variable
            if in_engine and mine.scope == "warehouse":
                mine = replace(mine, scope="state")
            found[mine.name] = _merge_variable_uses(found.get(mine.name), mine)
        return [found[name] for name in sorted(found)]


def read_yaml_config(text: str) -> SetupProjectConfiguration:
    """Reads what a YAML configuration says."""
    expressions: list[str] = []

    def keep_expression(template: str) -> str:
        expressions.append(template[2:-2])
        return f"\u2400{len(expressions) - 1}\u2400"

    without_remarks = replace_templates(text, lambda _: "", (REMARK,))
    blocks = " ".join(
        without_remarks[start + 2 : end - 2]
        for start, end in list_templates(without_remarks, (BLOCK,))
    )
    marked = replace_templates(
        replace_templates(without_remarks, lambda _: "", (BLOCK,)), keep_expression, (EXPRESSION,)
    )
    try:
        root = compose_yaml(marked)
    except UnfitYaml:
        return _read_config_as_text(text)
    variables = list(_find_variables(blocks, "other", "", None))
    gateways: list[str] = []
    engines: list[tuple[str, str]] = []
    states: list[tuple[str, str]] = []
    default = None
    for path, value in _iterate_scalars(root, (), set()):
        scope, gateway = _find_purpose(path), _find_gateway(path)
        key = path[-1] if path else ""
        if gateway is not None and gateway not in gateways:
            gateways.append(gateway)
        if key == "type" and not _MARK.search(value) and len(path) > 1:
            if path[-2] == _STATE:
                states.append((gateway or "", value))
            elif path[-2] in ("connection", "default_connection"):
                engines.append((gateway or "", value))
        if path == ("default_gateway",) and not _MARK.search(value):
            default = value
        for number in _MARK.findall(value):
            variables += _find_variables(expressions[int(number)], scope, key, gateway)
    return SetupProjectConfiguration(
        gateways=tuple(gateways),
        default_gateway=default or (gateways[0] if gateways else None),
        engines=tuple(engines),
        states=tuple(states),
        variables=tuple(variables),
        bot_keys=_list_mapping_keys(root, "cicd_bot"),
    )


def read_python_config(text: str) -> SetupProjectConfiguration:
    """Reads what a `config.py` says, as far as its text shows it."""
    found = read_python_facts(text)
    if found is None:
        return _read_config_as_text(text)
    return SetupProjectConfiguration(
        gateways=found.gateways,
        default_gateway=found.default_gateway or next(iter(found.gateways), None),
        engines=tuple((gateway or "", engine) for gateway, engine in found.engines),
        states=tuple((gateway or "", state) for gateway, state in found.states),
        variables=tuple(
            SetupConfigVariable(
                name=use.name,
                scope=_find_purpose(use.path),
                key=use.path[-1] if use.path else "",
                gateway=use.gateway,
                has_default=use.has_default,
                is_required=use.is_required,
            )
            for use in found.uses
        ),
        bot_keys=found.bot_keys,
    )


def join_configurations(
    parts: Iterable[SetupProjectConfiguration],
) -> SetupProjectConfiguration:
    """Joins the configurations of several files; the first default gateway counts."""
    joined = SetupProjectConfiguration()
    for part in parts:
        joined = SetupProjectConfiguration(
            gateways=tuple(dict.fromkeys((*joined.gateways, *part.gateways))),
            default_gateway=joined.default_gateway or part.default_gateway,
            engines=(*joined.engines, *part.engines),
            states=(*joined.states, *part.states),
            variables=(*joined.variables, *part.variables),
            bot_keys=tuple(dict.fromkeys((*joined.bot_keys, *part.bot_keys))),
            is_whole=joined.is_whole and part.is_whole,
        )
    return joined


def _read_config_as_text(text: str) -> SetupProjectConfiguration:
    """Reads only the variables of a file that no parser accepts."""
    without_remarks = replace_templates(text, lambda _: "", (REMARK,))
    without_comments = re.sub(r"(?m)^[^\S\n]*#.*$", "", without_remarks)
    return SetupProjectConfiguration(
        variables=tuple(_find_variables(without_comments, "other", "", None)),
        is_whole=False,
    )


def _find_variables(
    expression: str, scope: VariablePurpose, key: str, gateway: str | None
) -> Iterator[SetupConfigVariable]:
    for call in _CALL.finditer(expression):
        # `env_var('X') or 'y'` has a default, too.
        rest = expression[call.end() :]
        has_default = bool(call["default"]) or bool(re.search(r"\bor\b|\|\s*default\b", rest))
        yield SetupConfigVariable(call["name"], scope, key, gateway, has_default)


def _iterate_scalars(
    node: Node | None, path: tuple[str, ...], seen: set[int]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields each scalar with the keys above it; a node with several names is read once."""
    if node is None or (id(node) in seen and not isinstance(node, ScalarNode)):
        return
    seen.add(id(node))
    if isinstance(node, MappingNode):
        for key, value in node.value:
            name = str(key.value) if isinstance(key, ScalarNode) else ""
            if isinstance(value, MappingNode) and not value.value:
                yield (*path, name, ""), ""
            yield from _iterate_scalars(value, path if name == "<<" else (*path, name), seen)
    elif isinstance(node, SequenceNode):
        for value in node.value:
            yield from _iterate_scalars(value, path, seen)
    elif isinstance(node, ScalarNode):
        yield path, str(node.value)


def _list_mapping_keys(root: Node | None, name: str) -> tuple[str, ...]:
    """Lists the keys of a mapping at the top."""
    if not isinstance(root, MappingNode):
        return ()
    for key, value in root.value:
        if key.value == name and isinstance(value, MappingNode):
            return tuple(str(each.value) for each, _ in value.value)
    return ()


def _find_purpose(path: tuple[str, ...]) -> VariablePurpose:
    if _STATE in path:
        return "state"
    # A profile of dbt has its connections under `outputs`.
    return "warehouse" if {*_CONNECTIONS, "outputs"} & {*path} else "other"


def _find_gateway(path: tuple[str, ...]) -> str | None:
    """Finds the gateway that a setting belongs to; None if it belongs to all."""
    # A gateway's own settings are below its name; `gateways:` may also be a single one.
    if path[:1] == ("gateways",) and path[2:] and path[1] not in (*_CONNECTIONS, _STATE):
        return path[1]
    return None


def _read_gateway_fact(facts: tuple[tuple[str, str], ...], gateway: str | None) -> str | None:
    """Returns what the configuration says about a gateway, else about all."""
    known = dict(reversed(facts))
    return known.get(gateway or "", known.get(""))


def _merge_variable_uses(
    before: SetupConfigVariable | None, now: SetupConfigVariable
) -> SetupConfigVariable:
    """Merges two uses of one variable: it needs what each of them needs."""
    if before is None:
        return now
    order = ("state", "other", "warehouse")
    first = min(before, now, key=lambda each: order.index(each.scope))
    return replace(
        first,
        has_default=before.has_default and now.has_default,
        is_required=before.is_required or now.is_required,
    )
