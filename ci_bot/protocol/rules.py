"""The name of every rule, its weight and its needs, as its page declares them.

A rule has one page, `docs/rules/<id>.md`, and the page is its declaration: the lines between the
two `---` at its top are a `RuleSpec`. Code in both processes gets it by `rule("<id>")` and repeats
nothing of it. The pages are part of the package; each is read once, when its rule is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from ci_bot.protocol.plan import Severity
from ci_bot.resources import find_resource

READ_NO_MORE = "no model reads it any more, or it stays"

Scope = Literal["plan", "model", "change", "file", "statement", "evidence"]

SCOPES: Mapping[Scope, str] = {
    "plan": "looks at the plan, and at what the bot knows itself",
    "model": "looks at one model, as it stands after the change",
    "change": "looks at a model before and after the change",
    "file": "looks at files of the change",
    "statement": "looks at the statements around models and plans",
    "evidence": "looks at what was checked, and at what was not",
}
TOPICS: Mapping[str, str] = {
    "plan": "Whether there is a plan",
    "readers": "What readers lose",
    "results": "What rows and values mean",
    "history": "Intervals and history",
    "work": "Work and cost",
    "keys": "Keys, grains and audits",
    "tests": "Unit tests",
    "statements": "Statements and code that runs",
    "secrets": "Credentials, rights and personal data",
    "settings": "The project's configuration",
    "sources": "Seeds and sources",
    "evidence": "What was not checked",
}
# What a rule may need beside the thing that it checks. If it is missing, the rule is silent.
FACTS: Mapping[str, str] = {
    "base": "the models of prod, or of the base branch that counts as prod",
    "base_failures": "why the base branch does not load",
    "base_tests": "how a failing unit test ends on the base branch",
    "changed_files": "the files of the change, with both of their contents",
    "cost": "the estimate, from the runs that earlier applies recorded",
    "data_diff": "what an apply found when it compared tables with prod",
    "effects": "what the plan's statements do, rendered for the environment and for prod",
    "environments": "what the other environments of the state use",
    "failure": "why there is no plan",
    "limits": "the limits that the team has set",
    "linter": "what the project's linter says",
    "load_trace": "which changed files were opened while the project was loaded",
    "policy": "the team's policy, of the base commit and of the pull request",
    "prod_not_found": "where the state was asked for prod in vain",
    "prod_plan": "the same head, planned against prod",
    "pull_request": "what GitHub says of the pull request: conflict, fork",
    "readers": "which models read a model",
    "restatements": "what owners let prod build again after the merge",
    "row_counts": "how many rows an earlier apply has counted",
    "settings": "both configurations, loaded",
    "unit_tests": "how the project's unit tests end",
    "work": "the intervals and batches that are to be built",
}

# What can clear a finding after a review without a person.
PROOFS: Mapping[str, str] = {
    "data_diff": "an apply has compared all that prod has of the model, and of every changed model "
    "that reads it, and found no difference",
}

_INDEX = "README"
_MARK = "---\n"

Code = TypeVar("Code", bound=Callable[..., Any])


@dataclass(frozen=True)
class RuleSpec:
    """One rule.

    Attributes:
        id: what reports call it.
        severity: its weight, unless the code gives one of `also`.
        scope: what it looks at.
        needs: names of `FACTS`.
        also: the other weights that it may have, each as its page writes it: `low where ...`.
        topic: a name of `TOPICS`.
        cleared_by: what can show that its finding is wrong for the existing data: names of
            `PROOFS`.
    """

    id: str
    title: str
    severity: Severity
    scope: Scope
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    topic: str = ""
    cleared_by: tuple[str, ...] = ()

    @property
    def severities(self) -> frozenset[Severity]:
        """Every weight that the page names."""
        others = {one for text in self.also for one in text.partition(" where ")[0].split(", ")}
        return frozenset({self.severity, *cast("set[Severity]", others)})


class UnknownRule(LookupError):
    """No page declares this rule; `near` are ids that look similar."""

    def __init__(self, id_: str, near: tuple[str, ...]) -> None:
        super().__init__(f"There is no rule `{id_}`.")
        self.id, self.near = id_, near


def find_rule(id_: str) -> RuleSpec:
    """Returns the rule with this id.

    Raises:
        UnknownRule: it has no page.
    """
    return _read_rule_with_page(id_)[0]


def read_rule_page(id_: str) -> str:
    """Returns the rule's page as Markdown, without the lines that declare the rule.

    Raises:
        UnknownRule: it has no page.
    """
    return _read_rule_with_page(id_)[1]


def find_rule_page(id_: str) -> Path:
    """Returns the file of the rule's page, in a checkout or in the installed package.

    Raises:
        UnknownRule: it has no page.
    """
    return _find_page_folder() / f"{find_rule(id_).id}.md"


class _RuleTable(Mapping[str, RuleSpec]):
    def __getitem__(self, id_: str) -> RuleSpec:
        return find_rule(id_)

    def __iter__(self) -> Iterator[str]:
        return iter(_list_rule_ids())

    def __len__(self) -> int:
        return len(_list_rule_ids())

    def __contains__(self, id_: object) -> bool:
        return id_ in _list_rule_ids()


# Every rule, by id; a page is read when its rule is needed.
RULES: Mapping[str, RuleSpec] = _RuleTable()


class RuleRegistry(Generic[Code]):
    """The code of one kind of rules, in the order of definition.

    `@registry(SPEC, ...)` registers a function or a class with the rules that it gives.
    """

    def __init__(self) -> None:
        self._given: dict[Code, tuple[RuleSpec, ...]] = {}

    def __call__(self, *specs: RuleSpec) -> Callable[[Code], Code]:
        def enter_code(code: Code) -> Code:
            self._given[code] = specs
            return code

        return enter_code

    def __iter__(self) -> Iterator[Code]:
        return iter(self._given)

    def list_rules_given_by(self, code: Code) -> tuple[RuleSpec, ...]:
        """Returns the rules that a function or a class gives."""
        return self._given[code]

    @property
    def registered_specs(self) -> frozenset[RuleSpec]:
        """All rules that registered code gives."""
        return frozenset(spec for specs in self._given.values() for spec in specs)


@cache
def _list_rule_ids() -> tuple[str, ...]:
    return tuple(
        sorted(path.stem for path in _find_page_folder().glob("*.md") if path.stem != _INDEX)
    )


@cache
def _find_page_folder() -> Path:
    return find_resource("docs/rules")


@cache
def _read_rule_with_page(id_: str) -> tuple[RuleSpec, str]:
    if id_ not in _list_rule_ids():
        from difflib import get_close_matches

        raise UnknownRule(id_, tuple(get_close_matches(id_, _list_rule_ids(), n=5, cutoff=0.5)))
    with open(f"{_find_page_folder()}/{id_}.md", encoding="utf-8") as file:  # noqa: PTH123 - half the time
        _, top, body = file.read().split(_MARK, 2)
    return parse_declaration(top), body.lstrip("\n")


def parse_declaration(text: str) -> RuleSpec:
    """Reads the rule that the lines at the top of a page declare, without checking them.

    `tests/rule_pages.py` checks them.
    """
    fields = {key: value for key, _, value in (line.partition(": ") for line in text.splitlines())}
    also = fields.get("also")
    return RuleSpec(
        id=fields["id"],
        title=fields["title"],
        severity=cast("Severity", fields["severity"]),
        scope=cast("Scope", fields["scope"]),
        needs=_parse_rule_page_list(fields["needs"]),
        also=tuple(also.split("; ")) if also else (),
        topic=fields["topic"],
        cleared_by=_parse_rule_page_list(fields.get("cleared_by", "[]")),
    )


def _parse_rule_page_list(text: str) -> tuple[str, ...]:
    names = text.strip("[]")
    return tuple(names.split(", ")) if names else ()


def quote_name(name: str) -> str:
    """Returns the name between backticks; a backtick in the name becomes an apostrophe."""
    return f"`{name.replace('`', chr(39))}`"


def quote_names(names: Iterable[object], limit: int = 5) -> str:
    """Lists the first names in backticks, and how many are left out: `a`, `b` and 3 more."""
    every = sorted({str(name) for name in names})
    first = ", ".join(f"`{name}`" for name in every[:limit])
    rest = len(every) - limit
    return f"{first} and {rest} more" if rest > 0 else first
