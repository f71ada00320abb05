"""Regular expressions that importing SQLMesh compiles and hardly a run asks for, compiled late.

SQLMesh reads dates with dateparser, whose list of time zones is two thousand expressions: a tenth
of a worker's start. A date that names no zone asks for one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_MODULE = "dateparser.timezone_parser"


def compile_late() -> None:
    """Has the expressions of `dateparser.timezone_parser` compiled at their first use each. Without
    effect where that is imported already."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds that one module where it is, and runs it with another `regex.compile`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        loader: Any = spec.loader if spec else None
        if loader is not None:
            run = loader.exec_module
            loader.exec_module = lambda module: _with_late_patterns(lambda: run(module))
        return spec


def _with_late_patterns(run: Any) -> None:
    # It is dateparser's dependency and not ours.
    module: Any = import_module("regex")
    plain = module.compile
    module.compile = lambda *given, **named: _Late(plain, given, named)
    try:
        run()
    finally:
        module.compile = plain


class _Late:
    """A compiled expression, from the first question on."""

    def __init__(self, plain: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._made = plain, given, named

    def __getattr__(self, name: str) -> Any:
        plain, given, named = self._made
        pattern = plain(*given, **named)
        # Whoever asks again finds what is asked for most here, and comes not to this point.
        self.search, self.match = pattern.search, pattern.match
        return getattr(pattern, name)
