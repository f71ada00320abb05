"""Where statements stand, what renders them, and what rendering must be asked for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from sqlmesh.core.macros import RuntimeStage

from ci_bot.worker import compat
from ci_bot.worker.process.log_silence import silence_log
from ci_bot.worker.statements.effects import Action
from ci_bot.worker.statements.judging import Statement
from ci_bot.worker.statements.text.template import literal_parts

_BUILDING = (RuntimeStage.CREATING, RuntimeStage.EVALUATING)
_JINJA = re.compile(r"\{\{|\{%|JINJA_", re.IGNORECASE)
_DEEDS = frozenset(get_args(Action)) - {"nothing", "unknown"}
_STAGE = re.compile(r"runtime_stage", re.IGNORECASE)


class Place:
    """Where statements stand: what they have in common."""

    def __init__(self, model: str | None, dialect: str, code: str) -> None:
        self.model = model
        self.dialect = dialect
        self._code = code

    def rendered(
        self,
        slot: str,
        source: str,
        renders: Iterable[Callable[[], Any]],
        *,
        part: bool = False,
    ) -> Iterator[Statement]:
        """What a statement becomes, each text once; without a text where it does not render.

        Args:
            renders: give text or trees, one or a list; None where rendering must ask the engine.
        """
        texts: dict[str | None, str] = {}
        for render in renders:
            try:
                with silence_log("sqlmesh.core.renderer"):
                    given = render()
                if given is None:
                    texts.setdefault(None, "it asks the engine")
                    continue
                for tree in given if isinstance(given, list) else [given]:
                    texts.setdefault(self._text(tree), "")
            except Exception as error:  # the project's own macros run in here
                texts.setdefault(None, f"{type(error).__name__} without the engine")
        for text, problem in texts.items():
            yield Statement(
                slot,
                self.model,
                source if text is not None else f"{source}\n{self._code}",
                text,
                self.dialect,
                problem=f"it cannot be rendered: {problem}" if problem else "",
                part=part,
            )

    def hidden(
        self, slot: str, dialect: str, tree: Any, *, part: bool = False
    ) -> Iterator[Statement]:
        """What stands in a statement with macros or Jinja literally, whatever it renders to."""
        found, undecided = literal_parts(tree, dialect)
        # Inside a query no statement can be executed, whatever a macro's arguments hold.
        counts = ("code",) if part else _DEEDS
        effects = tuple(effect for effect in found if effect.action in counts)
        if undecided and effects:
            source = tree.sql(dialect=dialect)
            yield Statement(slot, self.model, source, None, dialect, part=part, literal=effects)

    def unreadable(self, slot: str, source: str) -> Statement:
        """A statement that is no SQL."""
        return Statement(slot, self.model, source, None, self.dialect, "it cannot be parsed")

    def _text(self, tree: Any) -> str:
        return tree if isinstance(tree, str) else compat.executed_text(tree, self.dialect)


def code_of(node: Any) -> str:
    """What stands for the code that a node's macros run."""
    macros = getattr(node, "jinja_macros", None)
    code = [(name, item.payload) for name, item in sorted((node.python_env or {}).items())]
    jinja = list(macros.data_hash_values) if macros is not None else []
    return hashlib.sha256(repr((code, jinja)).encode()).hexdigest()


def calls_nothing(node: Any, source: str) -> bool:
    """Whether no code of the project takes part in rendering, beyond SQLMesh's own macros."""
    code = any(not item.is_value for item in node.python_env.values())
    return not code and not _JINJA.search(source)


def stages_of(node: Any, source: str) -> tuple[RuntimeStage, ...]:
    """The stages to render for: both where the text, or code that takes part, may ask for it."""
    asks = _STAGE.search(source) or not calls_nothing(node, source)
    return _BUILDING if asks else _BUILDING[-1:]
