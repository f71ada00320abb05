"""Where the project's Python modules are found, and where its relative paths begin.

Plain `sqlmesh` finds modules through PYTHONPATH, and opens relative paths from the user's working
directory. The worker ignores PYTHONPATH, so that nothing can change its start; this module applies
the team's setting before the project's first line runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any


def add_search_paths_of_worker(directories: Sequence[str]) -> None:
    """Adds `directories` to the search path as PYTHONPATH would: before installed packages.

    Processes that Python forks or spawns inherit `sys.path`; others, such as Spark's, have the
    directories in their environment.
    """
    sys.path[:0] = [directory for directory in directories if directory not in sys.path]


def move_search_paths_of_worker(directories: Sequence[str], old: Path, new: Path) -> None:
    """Moves this process from one tree to another: its search path and working directory.

    Args:
        directories: The directories of `add_search_paths_of_worker`. Other entries stay, even in
            the old tree, such as a virtual environment.
    """
    moved = {
        directory: str(_move_search_path(Path(directory), old, new)) for directory in directories
    }
    sys.path[:] = [moved.get(entry, entry) for entry in sys.path]
    if inherited := os.environ.get("PYTHONPATH"):
        entries = inherited.split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(moved.get(entry, entry) for entry in entries)
    here = _move_search_path(Path.cwd(), old, new)
    while not here.is_dir():  # the other tree may lack the directory
        here = here.parent
    os.chdir(here)


def _move_search_path(path: Path, old: Path, new: Path) -> Path:
    """Returns `path` in the new tree if it is in the old one, else as it is."""
    for top in (old, old.resolve()):
        if path.is_relative_to(top):
            return new / path.relative_to(top)
    return path


# Imports of the project's modules that write no byte code.
#
# Python writes `__pycache__` into the directory of every module that it imports, and on a laptop
# that is the user's checkout, which a review promises not to change. Switching that off for the
# whole process would compile SQLMesh again in every run if its packages came without byte code.


_PACKAGES = ("site-packages", "dist-packages")


class _ReadOnlyImportLoader(SourceFileLoader):
    """Reads existing byte code, and writes none."""

    def set_data(self, path: Any, data: Any, *, _mode: int = 0o666) -> None:
        """Writes nothing; `SourceFileLoader` would write the file here."""


_finder = FileFinder.path_hook(
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (_ReadOnlyImportLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def import_without_byte_code(repository: Path) -> None:
    """Stops imports from writing below `repository`, except in virtual environments there."""
    hook = _make_import_path_hook(repository.resolve(), Path(sys.prefix).resolve())
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def _make_import_path_hook(repository: Path, environment: Path) -> Callable[[str], Any]:
    def find_modules_in(entry: str) -> Any:
        place = Path(entry or ".").resolve()
        inside = place.is_relative_to(repository) and not place.is_relative_to(environment)
        if not inside or not set(_PACKAGES).isdisjoint(place.parts):
            raise ImportError("for the next hook")
        return _finder(entry)

    return find_modules_in


# Work of SQLMesh's import whose result hardly any run uses, done later: a fifth of a worker's
# start.
#
# SQLMesh reads dates with dateparser, whose list of time zones is two thousand regular expressions.
# A date without a time zone needs one of them. But the end of `2024-01-01` looks like a zone, and
# then all of them are tried; so ISO 8601 dates are read here. Each of SQLMesh's 150 records, also
# those of its thirty engines, has a validator, which Pydantic can make when the first record is
# read. SQLMesh's analytics and one of the engines import requests to ask servers, which takes a
# tenth of the time of SQLMesh's own import.


def delay_import_work() -> None:
    """Delays work of the modules in `_DELAYED` until its result is used for the first time. No
    effect on a module that is already imported.
    """
    sys.meta_path.insert(0, _DelayingImportFinder())


class _DelayingImportFinder(MetaPathFinder):
    """A finder of the modules in `_DELAYED`, which runs each in its own way."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        run_delayed = _DELAYED.get(fullname)
        if run_delayed is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader: Any = spec.loader if spec else None
        if loader is not None:
            run = loader.exec_module
            loader.exec_module = lambda module: run_delayed(module, run)
        return spec


def _import_with_late_patterns(module: ModuleType, run: Callable[[ModuleType], None]) -> None:
    # It is dateparser's dependency and not ours.
    regex: Any = import_module("regex")
    plain = regex.compile
    regex.compile = lambda *given, **named: _LateImportPattern(plain, given, named)
    try:
        run(module)
    finally:
        regex.compile = plain


def _import_with_late_validators(module: ModuleType, run: Callable[[ModuleType], None]) -> None:
    run(module)
    # The base of SQLMesh's records. Each record inherits its settings.
    module.PydanticModel.model_config["defer_build"] = True


def _import_with_late_requests(module: ModuleType, run: Callable[[ModuleType], None]) -> None:
    name = "requests"
    if name in sys.modules:
        run(module)
        return
    late = _LateModule(name)
    sys.modules[name] = late
    try:
        run(module)
    finally:
        late.give_way()


def _import_with_quick_dates(module: Any, run: Callable[[ModuleType], None]) -> None:
    run(module)
    module.dateparser = _QuickDates(module.dateparser)


_DELAYED = {
    "sqlmesh.core.analytics.dispatcher": _import_with_late_requests,
    "sqlmesh.core.engine_adapter.fabric": _import_with_late_requests,
    "dateparser.timezone_parser": _import_with_late_patterns,
    "sqlmesh.utils.date": _import_with_quick_dates,
    "sqlmesh.utils.pydantic": _import_with_late_validators,
}


class _LateModule(ModuleType):
    """A replacement for a module in its importer's names, which imports the module when something
    in it is used.
    """

    def give_way(self) -> None:
        """Lets the next importer import the module itself."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> Any:
        self.give_way()
        return getattr(import_module(self.__name__), name)


class _LateImportPattern:
    """A regular expression that is compiled at its first use."""

    def __init__(self, plain: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self._made = plain, given, named

    def __getattr__(self, name: str) -> Any:
        plain, given, named = self._made
        pattern = plain(*given, **named)
        # Store the most used methods here, so that later calls skip `__getattr__`.
        self.search, self.match = pattern.search, pattern.match
        return getattr(pattern, name)


# A date, or a date and a time to the second; without a time zone.
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2})?")


# SQLMesh's own defaults are "1 week ago" and "in 1 week".
_RELATIVE_DATE = re.compile(
    r"in (?P<later>[0-9]{1,3}) (?P<unit>day|week)s?|(?P<ago>[0-9]{1,3}) (?P<past>day|week)s? ago"
)


class _QuickDates:
    """A replacement for dateparser in the module that calls it; it reads plain dates, and those of
    some days or weeks away, itself.
    """

    def __init__(self, dateparser: Any) -> None:
        self._dateparser = dateparser

    def parse(self, text: str, *given: Any, **named: Any) -> datetime | None:
        if _ISO_DATE.fullmatch(text):
            with suppress(ValueError):  # no such day
                return datetime.fromisoformat(text)
        if (away := _RELATIVE_DATE.fullmatch(text)) and not given and list(named) == ["settings"]:
            with suppress(KeyError, OverflowError):
                return _add_days_as_dateparser(away, **named["settings"])
        found: datetime | None = self._dateparser.parse(text, *given, **named)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dateparser, name)


def _add_days_as_dateparser(away: re.Match[str], **settings: Any) -> datetime:
    """Raises KeyError for settings that are not those of SQLMesh, and OverflowError as `datetime`
    does.
    """
    base = settings.pop("RELATIVE_BASE")
    if settings != {"TIMEZONE": "UTC"} or base.tzinfo is not timezone.utc:
        raise KeyError("settings")
    count = int(away["later"] or 0) - int(away["ago"] or 0)
    days = count * (7 if "week" in (away["unit"], away["past"]) else 1)
    found: datetime = base.replace(tzinfo=None) + timedelta(days=days)
    return found
