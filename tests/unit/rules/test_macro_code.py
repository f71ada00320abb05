"""SQL that SQLMesh would run as Python: what is refused, what is not, and that nothing of it runs.

`MacroEvaluator` is the real one, with its `eval` replaced as the worker replaces it. A payload calls
`tripwire`, a function that the evaluator's own names hold, so that a payload that runs is noticed.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d
from sqlmesh.core import macros
from sqlmesh.core.macros import MacroEvaluator
from sqlmesh.utils.errors import SQLMeshError
from sqlmesh.utils.metaprogramming import Executable, ExecutableKind

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages.problems import find_message_of_macro_refusal
from ci_bot.worker.rules.files.sql_text import find_evaluated_arguments_in_files
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.sqlmesh_compat.macro_code import find_objection_to_macro_code
from tests.oracle.fuzzing import caught, fuzz
from tests.unit.rules.world import files

PAYLOAD = "tripwire()"
CALL = "tripwire"


@pytest.fixture
def judged() -> Iterator[None]:
    """The evaluator as the worker has it."""
    sqlmesh_compat.guard_sqlmesh_macro_evaluation()
    yield
    vars(macros).pop("eval", None)


@pytest.fixture
def tripped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a payload has run; Python itself knows the function, as it knows `eval`."""
    found: list[str] = []

    def tripwire(*arguments: Any) -> bool:
        found.append(repr(arguments))
        return True

    monkeypatch.setattr(builtins, CALL, tripwire, raising=False)
    return found


def render(sql: str, dialect: str, **variables: Any) -> str:
    """SQL with its macros evaluated, as for a model."""
    environment = {
        "__sqlmesh__vars__": Executable(payload=repr(variables), kind=ExecutableKind.VALUE)
    }
    evaluator = MacroEvaluator(dialect=dialect, python_env=environment)
    found = evaluator.transform(d.parse_one(sql, dialect=dialect))
    return found.sql(dialect=dialect) if not isinstance(found, list) else str(found)


# How a text gets into the Python, one way each. `Q` stands for the dialect's quote.
IDENTIFIERS = {
    "a column": "SELECT @IF(Qa' + str({0}) + 'bQ IS NULL, 1, 2)",
    "a column of a table": "SELECT @IF(t.Qa' + str({0}) + 'bQ = 1, 1, 2)",
    "a column with a backslash": "SELECT @EVAL(Qa\\' + str({0}) + 'bQ)",
    "a part of an expression": "SELECT @EVAL(1 + Qa' + str({0}) + 'bQ)",
    "a condition of a clause": "SELECT 1 FROM t @WHERE(Qa' + str({0}) + 'bQ = 1) x > 1",
    "a condition of a join": "SELECT 1 FROM t LEFT @JOIN(Qa' + str({0}) + 'bQ = 1) u ON 1 = 1",
    "a condition of an order": "SELECT 1 FROM t @ORDER_BY(Qa' + str({0}) + 'bQ = 1) x",
    "a condition of a grouping": "SELECT 1 FROM t @GROUP_BY(Qa' + str({0}) + 'bQ = 1) x",
    "a common table": "@WITH(Qa' + str({0}) + 'bQ = 1) c AS (SELECT 1) SELECT 1",
    "a filter's lambda": "SELECT @FILTER([1], x -> x = Qa' + str({0}) + 'bQ)",
    "a filter's item": "SELECT @FILTER([Qa' + str({0}) + 'bQ], x -> x = 1)",
    "a text to parse": "SELECT @SQL(Qa' + str({0}) + 'bQ)",
    "in a lambda of another macro": "SELECT @EACH([1], x -> @IF(Qa' + str({0}) + 'bQ = 1, 1, 2))",
    "under a definition": "SELECT @EVAL(@IF(TRUE, Qa' + str({0}) + 'bQ, 1))",
    "a macro's name": "SELECT @FILTER([1], x -> @Qf', {0}, 'Q(x))",
}
FUNCTIONS = {
    "after a dot": "SELECT @EVAL(exp.{0})",
    "after a quoted dot": "SELECT @EVAL(QexpQ.{0})",
    "in a condition": "SELECT @IF(exp.{0} = 1, 1, 2)",
    "in a list": "SELECT @FILTER([exp.{0}], x -> x = 1)",
    "in a function": "SELECT @EVAL(COALESCE(NULL, exp.{0}))",
    "in a case": "SELECT @EVAL(CASE WHEN exp.{0} THEN 1 ELSE 2 END)",
}
# Attributes of any object, and calls of what they are.
ATTRIBUTES = {
    "a class": "SELECT @EVAL(EXTRACT(__class__ FROM 'x'))",
    "a method": "SELECT @EVAL(EXTRACT(format FROM '{0}'))",
    "a method that is called": "SELECT @EVAL(ARRAY_ANY(ARRAY('x'), EXTRACT(format FROM 'x')))",
}
DIALECTS = {"spark": "`", "duckdb": '"', "bigquery": "`", "postgres": '"', "snowflake": '"'}


def variants() -> Iterator[Any]:
    for name, text in {**IDENTIFIERS, **FUNCTIONS}.items():
        for dialect, quote in DIALECTS.items():
            sql = text.format(PAYLOAD).replace("Q", quote)
            yield pytest.param(sql, dialect, id=f"{name}-{dialect}")


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(("sql", "dialect"), list(variants()))
def test_payload__is_never_evaluated(sql: str, dialect: str, tripped: list[str]) -> None:
    with contextlib.suppress(SQLMeshError, SqlglotError, ValueError):
        render(sql, dialect)
    assert tripped == []


def test_payloads__run_without_the_judge(tripped: list[str]) -> None:
    """The oracle itself: most of the payloads above do run in SQLMesh as it comes."""
    ran = set()
    for name, text in {**IDENTIFIERS, **FUNCTIONS}.items():
        tripped.clear()
        with contextlib.suppress(SQLMeshError, SqlglotError, ValueError):
            render(text.format(PAYLOAD).replace("Q", "`"), "spark")
        if tripped:
            ran.add(name)
    assert len(ran) >= 16, sorted(ran)
    assert {"a column", "a filter's lambda", "after a dot", "in a case"} <= ran


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("sql", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_attribute__of_anything_but_a_date__is_refused(sql: str) -> None:
    with pytest.raises(SQLMeshError) as raised:
        render(sql, "spark")
    assert find_message_of_macro_refusal(raised.value) is not None


MADE_LATER = {
    "by another macro": ("@IF(@SQL('`a\\' + str({0}) + \\'b`'), 1, 2)", {}),
    "by a template": ("@EVAL(`@{{word}}`)", {"word": "a' + str({0}) + 'b"}),
    "by a variable in a text": ("@IF(@SQL(@word), 1, 2)", {"word": "exp.{0}"}),
    "by a variable of the configuration": ("@IF(@SQL(@VAR('word')), 1, 2)", {"word": "exp.{0}"}),
    "by an attribute": ("@EVAL(EXTRACT(__class__ FROM 'x'))", {}),
    "by a definition": ("@EVAL(@SQL(@'`a@{{word}}`'))", {"word": "' + str({0}) + '"}),
}


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(("sql", "variables"), MADE_LATER.values(), ids=MADE_LATER)
def test_payload__made_while_macros_run__is_never_evaluated(
    sql: str, variables: dict[str, str], tripped: list[str]
) -> None:
    filled = {name: value.format(PAYLOAD) for name, value in variables.items()}
    with contextlib.suppress(SQLMeshError, SqlglotError, ValueError):
        render(f"SELECT {sql.format(PAYLOAD)}", "spark", **filled)
    assert tripped == []


@pytest.mark.usefixtures("judged")
def test_refusal__is_found_in_what_sqlmesh_makes_of_it() -> None:
    with pytest.raises(SQLMeshError) as raised:
        render("SELECT @EVAL(exp.eval('1'))", "spark")

    assert find_message_of_macro_refusal(raised.value) == (
        "An argument of a macro would run as Python: `eval` is called. SQLMesh evaluates it, so it "
        "must be plain SQL."
    )
    assert find_message_of_macro_refusal(ValueError("something else")) is None


# What projects write, from SQLMesh's documentation of macros.
PLAIN = {
    "@EVAL(5 + 1)": "6",
    "@EVAL(@x + 1)": "4",
    "@IF(@word = 'prod', 1, 2)": "2",
    "@IF(@x > 1 AND NOT @word IN ('a', 'b'), 1, 2)": "1",
    "@IF(@x BETWEEN 1 AND 5, 1, 2)": "1",
    "@IF(@word LIKE 'de%', 1, 2)": "1",
    "@IF(@word IS NULL, 1, 2)": "2",
    "@IF(LOWER(@word) = 'dev', 1, 2)": "1",
    "@IF(@runtime_stage = 'loading', 1, 2)": "1",
    "@EVAL(CASE WHEN @x > 1 THEN 'a' ELSE 'b' END)": "SELECT a",
    "@EVAL(SUBSTRING(@word, 1, 2))": "SELECT de",
    "@EVAL(COALESCE(NULL, @x))": "3",
    "@EVAL(@REDUCE(@FILTER([1, 2, 3], x -> x > 1), (x, y) -> x + y))": "5",
    "@SQL('@x')": "3",
    "@SQL(@REDUCE([100, 200, 300, 400], (x, y) -> x + y))": "1000",
    "@EACH([a, b], x -> x + 1)": "a + 1",
    "@EVAL(EXTRACT(YEAR FROM CAST('2024-01-05' AS DATE)))": "2024",
    "@AND(TRUE, a > 1)": "TRUE AND a > 1",
    "@EVAL('it''s')": "'it\\'s'",
    '@EVAL("it\'s")': "'it\\'s'",
}


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(("sql", "expected"), PLAIN.items())
def test_plain_sql__means_what_it_meant(sql: str, expected: str) -> None:
    """The same with the judge as without: the same text, or the same failure of SQLMesh."""
    with_judge = _outcome(sql)
    vars(macros).pop("eval")

    assert with_judge == _outcome(sql)
    assert "MacroRefused" not in with_judge
    assert expected in with_judge or "Error" in with_judge


def _outcome(sql: str) -> str:
    try:
        return render(f"SELECT {sql}", "duckdb", x=3, word="dev")
    except (SQLMeshError, SqlglotError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


HARMLESS_PYTHON = [
    "exp.to_column('x') is None",
    "self.parse_one(self.template('@x', locals()), into=exp.Select)",
    "CAST('a', exp.DType.DECIMAL(10, 2))",
    "CAST('a', exp.DataType.Type.DATE)",
    "lambda id: GT(id, 1)",
    "self.send('foo', exp.to_column('a'), [1, 2], lambda x: x)",
    "int(DIV(1, 2))",
    "DOT(DOT(catalog, format), udf(exp.to_column('x')))",
    "not python",
    "exp.to_column('a') /* a comment */",
]
DANGEROUS_PYTHON = [
    "eval('1')", "DOT(exp, eval('1'))", "f'{x}'", "[x for x in y]", "(x := 1)", "x.__class__",
    "__import__('os')", "self.send('foo' + 'bar')", "self.eval_expression(x)", "self", "locals()",
    "exp.to_column('a' + 'b')", "exp.to_column('a', print(1))", "exp.DType.INT.__class__",
    "self.template('x', globals())", "self.parse_one('x', into=print(1))", "ARRAYANY([1], print)",
    "self.parse_one('x', dialect=print(1))", "EXTRACT('__class__', 'x')", "EXTRACT(x, 'y')",
    "(lambda MAX: MAX(1))(print)", "lambda x=print(1): x", "MAX(*print(1))", "MAX(x=print(1))",
    "{**print(1)}", "  eval('1')", "\teval('1')", "(yield)", "await x", "COALESCE(eval)",
    "lambda EQ: EQ('1')", "__builtins__", "x[eval('1')]", "DOT(__loader__, x)",
]  # fmt: skip


@pytest.mark.parametrize("source", HARMLESS_PYTHON)
def test_objection__to_what_sqlmesh_makes_of_sql__is_none(source: str) -> None:
    assert find_objection_to_macro_code(source) is None


@pytest.mark.parametrize("source", DANGEROUS_PYTHON)
def test_objection__to_python(source: str) -> None:
    assert find_objection_to_macro_code(source) is not None


@pytest.mark.parametrize("depth", [1, 50, 150, 5_000])
def test_objection__however_deep(depth: int) -> None:
    source = "MAX(" * depth + "eval('1')" + ")" * depth
    try:
        compile(source, "", "eval")
    except (SyntaxError, MemoryError, RecursionError):
        return  # Python does not run it either
    assert find_objection_to_macro_code(source) is not None


# Around a call: what may end a string, go on after it, or begin one again.
PIECES = st.lists(
    st.sampled_from(
        ["'", '"', "\\", " + ", ", ", "(", ")", " and ", "[", "]", "#", "\n", "a", "1"]
    ),
    max_size=7,
).map("".join)


def generated(before: str, after: str) -> str:
    """What SQLMesh makes of a quoted column."""
    return f"exp.to_column('\"{before}{PAYLOAD}{after}\"')"


def breaks_out(source: str) -> bool:
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.Name) and node.id == CALL for node in ast.walk(tree))


@given(PIECES, PIECES)
@fuzz(20_000)
def test_objection__whatever_surrounds_a_call_in_an_identifier(before: str, after: str) -> None:
    source = generated(before, after)

    assert not breaks_out(source) or find_objection_to_macro_code(source) is not None


def test_objection__surrounded_calls_do_break_out() -> None:
    """Without the judge the property above fails."""
    assert caught(st.tuples(PIECES, PIECES), lambda around: breaks_out(generated(*around)))


# ---------------------------------------------------------------------------- the text of files


def seen(
    text: str, path: str = "models/m.sql", **others: str | None
) -> list[tuple[int | None, str]]:
    after: dict[str, str | bytes | None] = {path: text, **others}
    before: dict[str, str | bytes | None] = dict(others.items())
    return [
        (sight.line, sight.evidence)
        for sight in find_evaluated_arguments_in_files(files(before, after))
    ]


MODEL = "MODEL (name shop.m, kind FULL{0});\n\nSELECT\n  a,\n  {1} AS x\nFROM shop.t\n"


@pytest.mark.parametrize(
    "argument",
    [
        "@IF(`a' + str(tripwire()) + 'b` IS NULL, 1, 2)",
        "@EVAL(exp.eval('1'))",
        "@EACH([1], x -> @IF(exp.eval('1'), 1, 2))",
        "@IF(@SQL('`a\\' + eval(1) + \\'b`'), 1, 2)",
        "@own_macro(a := `x' + eval(1) + '`)",
        "@STAR(t, exclude := [`a' + eval(1) + '`])",
        "@DEF(x, exp.eval('1'))",
        "@`f', eval(1), '`(a)",
        "@EVAL(EXTRACT(__globals__ FROM x))",
        "@EVAL(ARRAY_ANY(ARRAY('id'), tripwire))",
    ],
)
def test_text__names_file_and_line(argument: str) -> None:
    (found,) = seen(MODEL.format("", argument))

    assert found[0] == 5


def test_text__of_the_models_own_dialect() -> None:
    text = MODEL.format(", dialect duckdb", "@IF(\"a' + str(eval(1)) + 'b\" IS NULL, 1, 2)")

    assert [line for line, _ in seen(text)] == [5]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("config.yaml", "model_defaults:\n  dialect: postgres\n"),
        ("config.yaml", "model_defaults: {dialect: 'postgres, normalization_strategy=x'}\n"),
        ("config.py", "config = Config(model_defaults=ModelDefaultsConfig(dialect='postgres'))\n"),
        ("config.py", "config = dict(model_defaults={'dialect': 'postgres'})\n"),
        ("config.yaml", "model_defaults:\n  dialect: \"{{ env_var('DIALECT') }}\"\n"),
        ("README.md", ""),
    ],
)
def test_text__of_the_projects_default_dialect(name: str, config: str) -> None:
    text = MODEL.format("", "@IF(\"a' + str(eval(1)) + 'b\" IS NULL, 1, 2)")
    inputs = files({name: config}, {name: config, "models/m.sql": text})
    inputs = RuleInputs(**{**inputs.__dict__, "default_dialect": ""})

    assert [sight.line for sight in find_evaluated_arguments_in_files(inputs)] == [5]


@pytest.mark.parametrize(
    "macro", ["@EVAL (", "@ EVAL(", "@/* a */EVAL(", "@EVAL /* a */ (", "@EVAL -- a\n  (", "@eval("]
)
def test_text__with_blanks_and_comments_around_the_name(macro: str) -> None:
    assert [line for line, _ in seen(MODEL.format("", f"{macro}exp.eval('1'))"))] != []


def test_text__in_jinja_and_in_statements() -> None:
    text = (
        "MODEL (name shop.m, kind FULL);\n\n@IF(exp.eval('1'), DROP TABLE shop.old);\n\n"
        "JINJA_QUERY_BEGIN;\nSELECT {{ a }}, @IF(exp.open('x'), 1, 2)\nJINJA_END;\n"
    )

    assert sorted(line or 0 for line, _ in seen(text)) == [3, 6]


def test_text__in_yaml() -> None:
    text = (
        "before_all:\n  - SELECT 1\n  - \"@EVAL(exp.eval('1'))\"\nvariables:\n  a: me@example.com\n"
    )

    assert [line for line, _ in seen(text, "config.yaml")] == [3]


def test_text__that_the_base_has_already__is_not_held_against_the_change() -> None:
    old = MODEL.format("", "@EVAL(exp.eval('1'))")
    new = old.replace("  a,", "  a,\n  b,")

    assert (
        list(find_evaluated_arguments_in_files(files({"models/m.sql": old}, {"models/m.sql": new})))
        == []
    )


@pytest.mark.parametrize("argument", [*PLAIN, "@start_ds", "@EACH(['a'], x -> db.udf(x))",
    "@PIVOT(status, ['a', 'b'])", "@GENERATE_SURROGATE_KEY(a, shop.clean(b))",
    "@STAR(shop.t, except_ := [`customer's name`])", "@own(`it's`, 'don''t', DATE '2024-01-01')",
    "@own(EXTRACT(YEAROFWEEK FROM d), CAST(x AS DECIMAL(10, 2)), x::INT)",
    "@own(c.d.e.f.id.type)", "@HAVERSINE_DISTANCE(a, b, c, d, 'km')",
    "@DATE_SPINE('day', '2024-01-01', '2024-02-01')", "@own((SELECT MAX(id) FROM t))",
    "@own(SUM(x) OVER (PARTITION BY y ORDER BY z))", "@own(x -> UPPER(x), [1, 2], {'a': 1})",
    "@UNION('distinct', shop.a, shop.b)", "@SAFE_DIV(a, b)", "@DEDUPLICATE(t, [a], ['b desc'])",
])  # fmt: skip
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_text__of_plain_macros__stays_quiet(argument: str, dialect: str) -> None:
    assert seen(MODEL.format(f", dialect {dialect}", argument)) == []


# What SQLMesh gives out again as SQL, or what only names tables: none of it is computed in Python.
QUERIES = [
    "@WITH(@gateway = 'spark') big AS (SELECT id FROM shop.orders) SELECT id FROM big",
    "SELECT 1 FROM shop.a LEFT @JOIN(@x = 1) shop.orders ON a.id = orders.id",
    "SELECT 1 FROM shop.a AS a @WHERE(@x = 1) a.id IN (SELECT id FROM shop.orders)",
    "SELECT b FROM shop.a GROUP BY b @HAVING(@x = 1) MAX(id) > (SELECT MAX(id) FROM shop.orders)",
    "SELECT 1 FROM shop.a AS a @GROUP_BY(@x = 1) a.b, (SELECT 1 FROM shop.orders)",
    "SELECT 1 FROM shop.a AS a @ORDER_BY(@x = 1) (SELECT 1 FROM shop.orders)",
    "SELECT @IF(@runtime_stage = 'evaluating', (SELECT MAX(amount) FROM shop.orders), 0)",
    "SELECT @IF(@x = 1, db.hash(a), (SELECT EXTRACT(an_odd_part FROM d) FROM shop.orders))",
    "SELECT @IF(@AND(@x = 1, TRUE), (SELECT MAX(amount) FROM cat.shop.orders), 0)",
    "SELECT @EACH(['a', 'b'], x -> (SELECT MAX(@x) FROM shop.orders))",
    "SELECT @EACH([1], x -> @IF(@x = 1, (SELECT MAX(id) FROM shop.orders), 2))",
    "SELECT @REDUCE([(SELECT MAX(id) FROM shop.orders), 2], (x, y) -> x + y)",
    "SELECT @FILTER([1, 2], x -> EXISTS(SELECT 1 FROM shop.orders))",
    "SELECT 1 WHERE @AND(a IN (SELECT id FROM shop.orders), db.hash(b) > 1)",
    "SELECT 1 WHERE @OR(a IN (SELECT id FROM shop.orders), b > 1)",
    "SELECT @own((SELECT MAX(id) FROM shop.orders), a := (SELECT 1 FROM cat.shop.orders))",
    "SELECT @own([(SELECT MAX(id) FROM `my-project`.shop.orders), 2])",
    "SELECT @own((SELECT MAX(k) FROM shop.orders LATERAL VIEW EXPLODE(m) map AS k, v))",
    "SELECT @own((SELECT MAX(id) FROM VALUES (1, 2) AS map(id, b)))",
    "SELECT @own((SELECT * FROM shop.a, shop.b JOIN shop.c USING (id)))",
    "SELECT @own('SELECT * FROM shop.orders'), @SQL('SELECT MAX(id) FROM shop.orders')",
    "@DEF(top, x -> (SELECT MAX(x) FROM shop.orders)); SELECT @top(id)",
]
STATEMENTS = [
    "DELETE FROM @this_model WHERE id IN (SELECT id FROM shop.orders)",
    "INSERT INTO shop.t (a, b) SELECT a, b FROM shop.orders",
    "CREATE INDEX i ON shop.t (a)",
    "GRANT SELECT ON TABLE shop.t TO me",
    "ALTER TABLE shop.t SET TBLPROPERTIES ('a' = 'b')",
    "MERGE INTO shop.t USING shop.u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
    "CREATE VIEW shop.v (a, b) AS SELECT * FROM shop.u",
    "REFRESH TABLE shop.t",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("dialect", ["spark", "databricks", "duckdb"])
def test_text__of_queries_in_macros__stays_quiet(query: str, dialect: str) -> None:
    assert seen(f"MODEL (name shop.m, kind FULL, dialect {dialect});\n\n{query}\n") == []


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("macro", ["IF", "own"])
def test_text__of_statements_in_macros__stays_quiet(statement: str, macro: str) -> None:
    text = f"MODEL (name shop.m, kind FULL);\n\nSELECT 1 AS a;\n\n@{macro}(@x = 1, {statement});\n"

    assert seen(text) == []


# An argument that is not evaluated itself, and comes to Python on another way.
ON_ANOTHER_WAY = {
    "beside a condition that vanishes": "SELECT @IF(@EACH([], x -> x), {0}, 1)",
    "as the result of a condition": "SELECT @IF(@IF(TRUE, {0}, 1), 1, 2)",
    "from a list to a condition": "SELECT @EACH([{0}], x -> @IF(x, 1, 2))",
    "from a list to a condition's text": "SELECT @EACH([{0}], x -> @IF(@SQL('@x'), 1, 2))",
    "from a list to a filter": "SELECT @FILTER(@EACH([{0}], x -> x), y -> y)",
    "by names of arguments": "SELECT @IF(true := 1, condition := {0})",
    "under the name of a macro": "@DEF(each, x -> @IF(x, 1, 2)); SELECT @EACH({0})",
    "by a definition": "@DEF(y, {0}); SELECT @EVAL(@y)",
    "in a subquery of one's own macro": "SELECT @own((SELECT {0} FROM shop.orders))",
    "beside a table of one's own macro": "SELECT @own((SELECT 1 FROM shop.orders WHERE {0}))",
    "as a table": "SELECT @own((SELECT 1 FROM {0}))",
    "in the name of a table": 'SELECT @own((SELECT 1 FROM `\\" + str(tripwire()) #`))',
    "in a clause's condition": "@WITH({0}) c AS (SELECT 1 FROM shop.orders) SELECT 1",
    "in a macro within a query": "@WITH(TRUE) c AS (SELECT @EVAL({0}) FROM shop.o) SELECT 1",
    "in a condition in a branch": "SELECT @IF(TRUE, (SELECT @IF({0}, 1, 2) FROM shop.o), 3)",
}


@pytest.mark.parametrize("sql", ON_ANOTHER_WAY.values(), ids=ON_ANOTHER_WAY)
def test_text__that_comes_to_python_on_another_way__is_found(sql: str) -> None:
    text = sql.format("exp.eval('1')")

    assert [line for line, _ in seen(f"MODEL (name shop.m, kind FULL);\n\n{text}\n")] == [3]


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize("sql", ON_ANOTHER_WAY.values(), ids=ON_ANOTHER_WAY)
def test_payload__that_comes_to_python_on_another_way__is_never_evaluated(
    sql: str, tripped: list[str]
) -> None:
    evaluator = MacroEvaluator(dialect="spark")
    for statement in d.parse(sql.format("exp.tripwire()"), default_dialect="spark"):
        with contextlib.suppress(SQLMeshError, SqlglotError, ValueError):
            evaluator.transform(statement)
    assert tripped == []


@pytest.mark.parametrize("text", ["", "@", "MODEL (", "@IF(", "\x00@EVAL(", "@{x", "@'" * 50])
def test_text__that_is_no_sql__is_passed_over(text: str) -> None:
    assert seen(text) == []


def test_text__of_the_projects_own_files__stays_quiet() -> None:
    """Every model of the demo and of the test projects."""
    root = Path(__file__).parents[3]
    models = [*root.glob("examples/**/*.sql"), *root.glob("tests/security/probe/**/*.sql")]

    assert models
    assert [file for file in models if seen(file.read_text("utf-8"))] == []
