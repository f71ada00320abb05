"""A project of eight models and the pull requests that a team makes to it, drawn by a seed.

The history is a list of trees (path -> text). Every step is one edit of the tree before it, of the
kinds that SQLMesh tells apart: columns, conditions, kinds, metadata, seeds, macros, Python code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

Tree = dict[str, str]
Edit = Callable[[Tree, random.Random], str]

CONFIG = """\
gateways:
  main:
    connection:
{connection}
    state_connection:
      type: duckdb
      database: {state}

default_gateway: main

model_defaults:
  dialect: {dialect}
  start: 2024-01-01

variables:
  floor: 10
"""

CONNECTIONS = {
    "duckdb": "      type: duckdb\n      database: {warehouse}",
    "spark": "      type: spark\n      config:\n        spark.master: local[1]",
}


def model(name: str, kind: str, columns: list[str], rest: str, more: str = "") -> str:
    """A SQL model in the form that the edits know: one column a line."""
    chosen = ",\n".join(f"  {column}" for column in columns)
    return f"MODEL (\n  name shop.{name},\n  kind {kind},{more}\n);\n\nSELECT\n{chosen}\n{rest}\n"


FILES: Tree = {
    "seeds/customers.csv": "customer_id,name\n1,Ada\n2,Grace\n",
    "models/customers.sql": (
        "MODEL (\n  name shop.customers,\n  kind SEED (path '../seeds/customers.csv'),\n"
        "  columns (customer_id INT, name TEXT)\n);\n"
    ),
    "models/orders.sql": model(
        "orders",
        "INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 10)",
        [
            "CAST(c.customer_id AS INT) AS order_id",
            "CAST(c.customer_id * 10 AS INT) AS amount",
            "CAST(@start_ds AS DATE) AS order_date",
        ],
        "FROM shop.customers AS c\nWHERE\n  c.customer_id > 0",
        "\n  cron '@daily',\n  audits (not_null(columns := (order_id)))",
    ),
    "models/large.sql": model(
        "large",
        "VIEW",
        ["o.order_id", "o.amount", "o.order_date"],
        "FROM shop.orders AS o\nWHERE\n  o.amount > @floor",
    ),
    "models/revenue.sql": model(
        "revenue",
        "FULL",
        ["o.order_id", "CAST(SUM(@twice(o.amount)) AS BIGINT) AS amount"],
        "FROM shop.orders AS o\nWHERE\n  o.amount > 0\nGROUP BY\n  o.order_id",
    ),
    "models/best.sql": model(
        "best",
        "FULL",
        ["r.order_id", "CAST(r.amount AS BIGINT) AS amount"],
        "FROM shop.revenue AS r\nWHERE\n  r.amount > 5",
    ),
    "models/best_view.sql": model(
        "best_view",
        "VIEW",
        ["b.order_id", "b.amount"],
        "FROM shop.best AS b\nWHERE\n  b.amount > 6",
    ),
    "models/scores.py": (
        "import typing as t\n\nimport pandas as pd\nfrom helpers.scoring import score\n"
        "from sqlmesh import ExecutionContext, model\n\n\n"
        "@model(\n    'shop.scores',\n    kind='FULL',\n"
        "    columns={'order_id': 'int', 'score': 'int'},\n"
        "    depends_on=['shop.revenue'],\n)\n"
        "def execute(context: ExecutionContext, **kwargs: t.Any) -> pd.DataFrame:\n"
        "    return pd.DataFrame({'order_id': [1], 'score': [score(1)]})\n"
    ),
    "helpers/__init__.py": "",
    "helpers/scoring.py": "def score(value):\n    return value + 1\n",
    "macros/__init__.py": "",
    "macros/twice.py": (
        "from sqlmesh import macro\n\n\n@macro()\ndef twice(evaluator, value):\n"
        "    return f'{value} * 2'\n"
    ),
}

_SQL = ("orders", "large", "revenue", "best", "best_view")
_NUMBER = re.compile(r"\d+")


def _replace(tree: Tree, path: str, change: Callable[[str], str]) -> bool:
    if path not in tree:
        return False
    after = change(tree[path])
    changed = after != tree[path]
    tree[path] = after
    return changed


def _path(name: str) -> str:
    return f"models/{name}.sql"


def add_column(tree: Tree, draw: random.Random) -> str:
    """At the end or at the beginning of the list; SQLMesh calls only the one non-breaking."""
    name, column = draw.choice(_SQL[:2] + _SQL[3:]), f"extra_{draw.randrange(10**6)}"
    if draw.random() < 0.5:
        _replace(
            tree, _path(name), lambda text: text.replace("\nFROM", f",\n  1 AS {column}\nFROM", 1)
        )
    else:
        _replace(
            tree,
            _path(name),
            lambda text: text.replace("SELECT\n", f"SELECT\n  1 AS {column},\n", 1),
        )
    return f"add column {column} to {name}"


def drop_column(tree: Tree, draw: random.Random) -> str:
    for name in draw.sample(_SQL, len(_SQL)):
        if _replace(
            tree,
            _path(name),
            lambda text: re.sub(r",\n  1 AS extra_\d+", "", text, count=1),
        ):
            return f"drop a column of {name}"
    return add_column(tree, draw)


def change_condition(tree: Tree, draw: random.Random) -> str:
    name = draw.choice(("orders", "revenue", "best", "best_view"))
    number = str(draw.randrange(1000))
    _replace(tree, _path(name), lambda text: re.sub(r"> \d+", f"> {number}", text, count=1))
    return f"change the condition of {name}"


def change_kind(tree: Tree, draw: random.Random) -> str:
    name = draw.choice(("large", "best", "best_view"))
    _replace(
        tree,
        _path(name),
        lambda text: (
            text.replace("kind FULL", "kind V", 1)
            .replace("kind VIEW", "kind FULL", 1)
            .replace("kind V,", "kind VIEW,", 1)
        ),
    )
    return f"change the kind of {name}"


def describe(tree: Tree, draw: random.Random) -> str:
    name, text = draw.choice(_SQL), f"Words {draw.randrange(10**6)}"

    def change(before: str) -> str:
        without = re.sub(r"\n  description '[^']*',", "", before)
        return without.replace("MODEL (", f"MODEL (\n  description '{text}',", 1)

    _replace(tree, _path(name), change)
    return f"describe {name}"


def comment(tree: Tree, draw: random.Random) -> str:
    name = draw.choice(_SQL)
    words = f"/* note {draw.randrange(10**6)} */"
    _replace(
        tree,
        _path(name),
        lambda text: re.sub(r"(/\* note \d+ \*/ )?FROM", f"{words} FROM", text, count=1),
    )
    return f"comment in {name}"


def change_batch(tree: Tree, draw: random.Random) -> str:
    size = draw.randrange(1, 40)
    _replace(
        tree,
        _path("orders"),
        lambda text: re.sub(r"batch_size \d+", f"batch_size {size}", text),
    )
    return "change the batch size"


def forward_only(tree: Tree, draw: random.Random) -> str:
    def change(text: str) -> str:
        if "forward_only" in text:
            return text.replace(", forward_only true", "")
        return (
            text.replace("batch_size", "forward_only true, batch_size", 1)
            .replace("forward_only true, batch_size", "batch_size", 1)
            .replace(")", ", forward_only true)", 1)
        )

    _replace(tree, _path("orders"), change)
    return "toggle forward-only of orders"


def change_audit(tree: Tree, draw: random.Random) -> str:
    column = draw.choice(("order_id", "amount", "order_date"))
    _replace(
        tree,
        _path("orders"),
        lambda text: re.sub(r"not_null\(.*?\)\)", f"not_null(columns := ({column}))", text),
    )
    return "change an audit"


def change_seed(tree: Tree, draw: random.Random) -> str:
    tree["seeds/customers.csv"] += f"{draw.randrange(3, 10**6)},Somebody\n"
    return "add a seed row"


def change_macro(tree: Tree, draw: random.Random) -> str:
    factor = str(draw.randrange(2, 1000))
    _replace(tree, "macros/twice.py", lambda text: re.sub(r"\* \d+", f"* {factor}", text))
    return "change the macro"


def change_helper(tree: Tree, draw: random.Random) -> str:
    number = str(draw.randrange(1000))
    _replace(tree, "helpers/scoring.py", lambda text: _NUMBER.sub(number, text))
    return "change the helper of a Python model"


def change_variable(tree: Tree, draw: random.Random) -> str:
    number = str(draw.randrange(1000))
    _replace(tree, "config.yaml", lambda text: re.sub(r"floor: \d+", f"floor: {number}", text))
    return "change a variable"


def add_model(tree: Tree, draw: random.Random) -> str:
    name = f"leaf_{draw.randrange(10**6)}"
    parent = draw.choice(("orders", "revenue", "best"))
    tree[_path(name)] = model(
        name, draw.choice(("FULL", "VIEW")), ["p.order_id"], f"FROM shop.{parent} AS p"
    )
    return f"add {name} below {parent}"


def remove_model(tree: Tree, draw: random.Random) -> str:
    leaves = sorted(path for path in tree if path.startswith("models/leaf_"))
    if not leaves:
        return add_model(tree, draw)
    path = draw.choice(leaves)
    del tree[path]
    return f"remove {path}"


EDITS: tuple[Edit, ...] = (
    *(add_column, drop_column, change_condition, change_kind, describe, comment, change_batch),
    *(forward_only, change_audit, change_seed, change_macro, change_helper, change_variable),
    *(add_model, remove_model),
)


def first_tree(root: Path, dialect: str) -> Tree:
    """The project before its first change; warehouse and state lie in `root`."""
    connection = CONNECTIONS[dialect].format(warehouse=root / "warehouse.duckdb")
    config = CONFIG.format(connection=connection, state=root / "state.duckdb", dialect=dialect)
    return {"config.yaml": config, **FILES}


def steps(tree: Tree, *, seed: int, count: int) -> list[tuple[str, Tree]]:
    """`count` changes, each on top of the one before; every kind of edit comes in every round."""
    draw = random.Random(seed)
    found: list[tuple[str, Tree]] = []
    while len(found) < count:
        for edit in draw.sample(EDITS, len(EDITS)):
            after = dict(tree)
            words = edit(after, draw)
            if draw.random() < 0.3:
                words += f", {draw.choice(EDITS)(after, draw)}"
            found.append((words, after))
            tree = after
    return found[:count]


def write(tree: Tree, root: Path) -> Path:
    """Makes `root` hold exactly this tree."""
    for path in [path for path in root.rglob("*") if path.is_file()]:
        if str(path.relative_to(root)) not in tree:
            path.unlink()
    for name, text in tree.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_text("utf-8") != text:
            target.write_text(text, "utf-8")
    return root
