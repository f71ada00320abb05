"""The registry of rules: pages, code, and what each promises of the other."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Any, get_args

import pytest
import yaml

from ci_bot.bot.decision import data_evidence  # noqa: F401 - rules register when imported
from ci_bot.bot.decision.judgement import NOT_LISTED
from ci_bot.bot.decision.risks import compares, judges
from ci_bot.bot.policy.weighable_rules import PROTECTED, UNWEIGHED
from ci_bot.protocol import rules
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import (
    FACTS,
    RULES,
    RuleRegistry,
    RuleSpec,
    Scope,
    UnknownRule,
    find_rule,
    read_rule_page,
)
from ci_bot.worker.rules import registry as worker_registry
from ci_bot.worker.rules import run_rules  # noqa: F401 - rules register when they are imported
from ci_bot.worker.rules.model_rules import MODEL_RULES
from ci_bot.worker.rules.models.linter_rule import ModelRule
from tests.conftest import REPOSITORY
from tests.rule_pages import FOLDER, INDEX, faults, index, with_policy

# Read by `run` and `judge` themselves, where a rule fails and where there are too many findings.
OF_THE_RUN = {worker_registry.CRASHED.id: "worker", NOT_LISTED.id: "bot"}
BOT: tuple[RuleRegistry[Any], ...] = (judges, compares)
WORKER: tuple[RuleRegistry[Any], ...] = (
    MODEL_RULES,
    *(made for made in vars(worker_registry).values() if isinstance(made, RuleRegistry)),
)
# The first rules on a plan had numbers. A new rule has none.
NUMBERED = {
    "R01-base-broken",
    "R01-lint-error",
    "R01-load-failed",
    "R01-plan-failed",
    "R01-prod-plan-fails",
    "R01-uncategorized",
    "R02-test-failed-before",
    "R02-test-fails",
    "R03-conflict",
    "R04-column-dropped",
    "R04-mass-removal",
    "R04-model-removed",
    "R05-forward-only-destructive",
    "R05-forward-only-schema",
    "R06-breaking-rebuild",
    "R06-history-lost",
    "R06-interval-limit",
    "R06-metadata-backfill",
    "R06-past-numbers",
    "R07-near-budget",
    "R07-not-known",
    "R07-over-budget",
    "R08-restatement-elsewhere",
    "R09-duplicate-keys",
    "R09-null-keys",
    "R09-rows-gained",
    "R09-rows-lost",
    "R09-values-differ",
    "R10-files-not-read",
    "R10-fork",
    "R10-not-checked",
    "R10-not-listed",
    "R10-prod-not-found",
    "R11-changed-elsewhere",
    "R12-code-on-load",
    "R12-shared-change",
}
# Which code may give a rule of a scope first; others may give it beside.
HOME: dict[Scope, set[str]] = {
    "plan": {"judges"},
    "evidence": {"judges", "compares"},
    "model": {"MODEL_RULES"},
    "change": {"on_change", "on_project"},
    "file": {"on_file", "on_file_and_models"},
    "statement": {"on_statement", "on_project"},
}


def given(registries: tuple[RuleRegistry[Any], ...]) -> set[str]:
    return {spec.id for registry in registries for spec in registry.registered_specs}


SEVERITIES = set(get_args(Severity))
# Where severities are chosen. `rules.sql` takes queries apart, and has words like these of its own.
OURS = ("ci_bot.worker.rules", "ci_bot.worker.sql_effects", "ci_bot.bot.decision")
NOT_OURS = "ci_bot.worker.sql"
# What GitHub shows of a code block without scrolling, on a desk.
LONGEST_SQL = 100

# ------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("id_", RULES)
def test_page__declares_and_explains_its_rule(id_: str) -> None:
    assert not faults(id_, (FOLDER / f"{id_}.md").read_text("utf-8"))


@pytest.mark.parametrize("id_", RULES)
def test_page__says_how_a_team_weighs_its_rule_otherwise(id_: str) -> None:
    text = (FOLDER / f"{id_}.md").read_text("utf-8")
    may = id_ not in UNWEIGHED and id_ not in PROTECTED
    assert text.count("**Another weight, or none.** ") == 1
    assert text.count(f"[policy](../policy.md): `rule: {id_}`.") == int(may)
    assert with_policy(id_, text) == text, "run `python -m tests.rule_pages`"


@pytest.mark.parametrize("id_", RULES)
def test_page__has_no_line_of_sql_that_a_reader_has_to_scroll(id_: str) -> None:
    text = (FOLDER / f"{id_}.md").read_text("utf-8")
    for block in re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert max(map(len, block.splitlines()), default=0) <= LONGEST_SQL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("id: limit-in-model", "id: limit"),
        ("severity: high", "severity: hefty"),
        ("also: low where", "also: low if"),
        ("also: low where", "also: high where"),
        ("also: low where", "also: mild where"),
        ("scope: model", "scope: query"),
        ("needs: []", "needs: [luck]"),
        ("needs: []", "needs: [readers, base]"),
        ("needs: []", "needs:"),
        ("topic: results", "topic: sorrows"),
        ("topic: results\n", ""),
        ("topic: results\n", "topic: results\nmood: good\n"),
        ("# A LIMIT was left in", "# A LIMIT"),
        ("## Fires", "## It fires"),
        ("## Stays quiet", "## How to clear it"),
        ("---\nid", "id"),
    ],
)
def test_page__that_is_wrong_is_noticed(old: str, new: str) -> None:
    text = (FOLDER / "limit-in-model.md").read_text("utf-8")
    assert old in text
    assert faults("limit-in-model", text.replace(old, new, 1))


def test_ids__with_a_number_are_those_that_have_always_had_one() -> None:
    """An id is never changed: policies, acceptances in ledgers and links name it."""
    assert {id_ for id_ in RULES if re.match(r"R\d", id_)} == NUMBERED


def test_ids__are_words_apart_by_hyphens() -> None:
    assert not [id_ for id_ in RULES if not re.fullmatch(r"(R\d\d-)?[a-z0-9]+(-[a-z0-9]+)*", id_)]


def test_index__is_made_of_the_pages() -> None:
    assert INDEX.read_text("utf-8") == index(), "run `python -m tests.rule_pages`"


def test_facts__are_all_needed_by_some_rule() -> None:
    assert {need for spec in RULES.values() for need in spec.needs} == set(FACTS)


def test_keywords__of_the_corpus_are_about_rules_that_exist() -> None:
    keywords = yaml.safe_load((REPOSITORY / "tests/corpus/keywords.yaml").read_text("utf-8"))
    assert keywords.keys() <= RULES.keys()


def test_rule__that_is_unknown_names_its_neighbours() -> None:
    with pytest.raises(UnknownRule) as failure:
        find_rule("limit-in-modell")
    assert failure.value.near[0] == "limit-in-model"


@pytest.mark.parametrize("id_", ["README", "../rules/random", "", "random.md", "/etc/passwd"])
def test_rule__is_no_path(id_: str) -> None:
    with pytest.raises(UnknownRule):
        read_rule_page(id_)


def test_pages__are_read_in_less_than_15_ms_and_only_when_asked() -> None:
    spent = []
    for _ in range(7):
        for cached in (rules._read_rule_with_page, rules._list_rule_ids, rules._find_page_folder):
            cached.cache_clear()
        find_rule("random")
        assert rules._read_rule_with_page.cache_info().currsize == 1
        start = time.process_time()
        assert len(list(RULES.values())) > 100
        spent.append(time.process_time() - start)
    assert min(spent) < 0.015


def test_pages__travel_with_the_package() -> None:
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    included = build["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs/rules"] == "ci_bot/docs/rules"
    copied = (REPOSITORY / "Dockerfile").read_text("utf-8").splitlines()
    context = (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines()
    for path in included:
        assert f"COPY {path} /src/{path}" in copied, path
        assert f"!{path}" in context, path


# -------------------------------------------------------------------------------------------- code


def named_in_code() -> Iterator[tuple[str, str]]:
    """(rule, file) of each `find_rule("...")` in the package."""
    for path in sorted((REPOSITORY / "ci_bot").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "find_rule"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield node.args[0].value, path.relative_to(REPOSITORY).as_posix()


def test_code__names_each_rule_once() -> None:
    places = sorted(named_in_code())
    assert [id_ for id_, _ in places] == sorted(RULES)


def test_code__of_one_process_gives_each_rule() -> None:
    bot, worker = given(BOT), given(WORKER)
    assert not bot & worker
    assert bot | worker == set(RULES) - set(OF_THE_RUN)
    process = {id_: path.split("/")[1] for id_, path in named_in_code()}
    assert process == dict.fromkeys(bot, "bot") | dict.fromkeys(worker, "worker") | OF_THE_RUN


@pytest.mark.parametrize("spec", [spec for id_, spec in RULES.items() if id_ not in OF_THE_RUN])
def test_code__that_gives_a_rule_reads_what_its_scope_says(spec: RuleSpec) -> None:
    made: dict[str, RuleRegistry[Any]] = {
        "judges": judges,
        "compares": compares,
        "MODEL_RULES": MODEL_RULES,
    }
    made |= {n: r for n, r in vars(worker_registry).items() if isinstance(r, RuleRegistry)}
    givers = {name for name, registry in made.items() if spec in registry.registered_specs}
    assert givers & HOME[spec.scope]


# ---------------------------------------------------------------------------- what the code says


@dataclass
class Reach:
    """What stands in the code of a rule, and in the code of ours that it uses.

    Attributes:
        weights: severities; what is only compared with is left out.
        specs: rules that it may give.
        words: names and attributes that it reads.
    """

    weights: set[str] = field(default_factory=set)
    specs: set[RuleSpec] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


@cache
def reach_of(code: Callable[..., Any]) -> Reach:
    found = Reach()
    todo: list[tuple[ast.AST, dict[str, Any]]] = [source_of(code)]
    done: set[tuple[str, str]] = set()
    while todo:
        tree, scope = todo.pop()
        compared = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in compared:
                found.weights |= {node.value} & SEVERITIES if isinstance(node.value, str) else set()
            if isinstance(node, ast.Attribute):
                found.words.add(node.attr)
                holder = scope.get(node.value.id) if isinstance(node.value, ast.Name) else None
                spec = getattr(holder, node.attr, None)
                found.specs |= {spec} if isinstance(spec, RuleSpec) else set()
            name = node.id if isinstance(node, ast.Name) else ""
            if name in scope and (scope["__name__"], name) not in done:
                done.add((scope["__name__"], name))
                found.words.add(name)
                found.specs |= {scope[name]} if isinstance(scope[name], RuleSpec) else set()
                todo += used(name, scope)
    return found


def source_of(code: Any) -> tuple[ast.AST, dict[str, Any]]:
    """A function or class as a tree, without its decorators, and the names that it sees."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
    assert isinstance(tree, ast.FunctionDef | ast.ClassDef)
    tree.decorator_list = []
    return tree, vars(sys.modules[code.__module__])


def used(name: str, scope: dict[str, Any]) -> list[tuple[ast.AST, dict[str, Any]]]:
    """What a name of a module stands for, where that is code of ours and no rule by itself."""
    value = scope[name]
    if isinstance(value, FunctionType):
        is_rule = any(value in registry for registry in (*BOT, *WORKER))
        ours = value.__module__.startswith(OURS) and not value.__module__.startswith(NOT_OURS)
        return [source_of(value)] if ours and not is_rule else []
    module = ast.parse(inspect.getsource(sys.modules[scope["__name__"]]))
    return [
        (node.value, scope)
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]


CODE: list[tuple[Callable[..., Any], tuple[RuleSpec, ...]]] = [
    (code, registry.list_rules_given_by(code)) for registry in (*BOT, *WORKER) for code in registry
]


EACH_CODE = pytest.mark.parametrize(
    ("code", "specs"), CODE, ids=[f"{code.__module__}.{code.__name__}" for code, _ in CODE]
)


@EACH_CODE
def test_code__gives_the_rules_that_its_decorator_names(
    code: Callable[..., Any], specs: tuple[RuleSpec, ...]
) -> None:
    own = {code.spec} if isinstance(code, type) and issubclass(code, ModelRule) else set()
    assert reach_of(code).specs | own == set(specs)


@EACH_CODE
def test_severity__beside_the_rules_own_is_named_on_a_page(
    code: Callable[..., Any], specs: tuple[RuleSpec, ...]
) -> None:
    assert reach_of(code).weights <= {one for spec in specs for one in spec.severities}


# These take the severity of what they stand for.
TAKEN = {"R10-not-listed", "rule-crashed"}


@pytest.mark.parametrize("spec", [s for s in RULES.values() if s.also and s.id not in TAKEN])
def test_severity__that_a_page_names_is_given_by_the_code(spec: RuleSpec) -> None:
    written = {one for code, specs in CODE if spec in specs for one in reach_of(code).weights}
    assert spec.severities - {spec.severity} <= written


# Where each fact is read. tests/integration/test_rule_needs.py shows that a review supplies it.
READ_AS: dict[str, set[str]] = {
    "base": {"before", "from_base", "ModelPair"},
    "base_failures": {"base_failures"},
    "base_tests": {"on_base"},
    "changed_files": {"changed_files", "code_on_load", "unread_because"},
    "cost": {"list_model_costs"},
    "data_diff": {"TableDiff"},
    "prod_not_found": {"prod_not_found"},
    "effects": {"judged", "JudgedEffect", "statements"},
    "environments": {"environments", "also_in"},
    "failure": {"failure"},
    "limits": {"max_intervals", "max_executor_hours"},
    "linter": {"lint"},
    "load_trace": {"load_known"},
    "policy": {"policy_changes", "weighing"},
    "prod_plan": {"prod_plan"},
    "pull_request": {"conflict", "fork"},
    "readers": {"readers", "depends_on"},
    "restatements": {"prod_restatements"},
    "row_counts": {"row_counts"},
    "settings": {"gateways", "variables"},
    "unit_tests": {"tests"},
    "work": {"choose_work_to_judge"},
}


@pytest.mark.parametrize(("spec", "need"), [(s, need) for s in RULES.values() for need in s.needs])
def test_need__is_read_by_the_rules_code(spec: RuleSpec, need: str) -> None:
    words = {word for code, specs in CODE if spec in specs for word in reach_of(code).words}
    assert words & READ_AS[need]
