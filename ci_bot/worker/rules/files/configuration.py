"""The project's configuration, key by key: what a changed setting does to models and data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from ci_bot.contracts.rules import rule
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened
from ci_bot.secrets.names import is_suspect
from ci_bot.worker.rules.files.settings import OTHER, SETTINGS, SettingJudgement, judged
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.place import line_of
from ci_bot.worker.rules.registry import on_file, on_project
from ci_bot.worker.words.yaml_data import load

SINGLE_WRITER = rule("single-writer-state")

_FILES = frozenset({"config.yaml", "config.yml"})
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_DIGITS = 16
_STAND_IN = re.compile(rf"jinja[0-9a-f]{{{_DIGITS}}}")
SHOWN = 80
SETTINGS_SHOWN = 4

Setting = tuple[str, Any, Any]


def read(text: str | None) -> dict[str, Any] | None:
    """A YAML configuration flattened to dotted keys; None where it is no mapping.

    What Jinja gives depends on the machine, so a template is a value that equals itself alone.
    """
    if text is None:
        return None
    found = load(_JINJA.sub(_stand_in, text))
    return dict(_flat(found, ())) if isinstance(found, dict) else None


def _stand_in(template: re.Match[str]) -> str:
    """A word for a template, the same for the same one."""
    words = " ".join(template[0].split())
    return f"jinja{sha256(words.encode()).hexdigest()[:_DIGITS]}"


def _flat(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, (*path, str(key)))
    else:
        yield "\x00".join(path), value


@on_file(*SETTINGS)
def changed(inputs: RuleInputs) -> Iterator[Observation]:
    """Every setting of a YAML file that differs, with what it does."""
    for path in inputs.changed_files or ():
        if not is_project_yaml(inputs, path):
            continue
        old, new = read(inputs.text_before(path)), read(inputs.text_after(path))
        text = inputs.text_after(path) or ""
        if old is None or new is None:
            continue  # new projects have nothing to compare; broken files fail the load
        added = _gateways_added(old, new)
        settings = [
            (key, old.get(key), new.get(key))
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key) and _gateway(key) not in added
        ]
        yield from _observations(settings, path, text)
        for name in sorted(added):
            yield Observation(
                OTHER,
                f"The gateway `{name}` is added. Whatever runs without a gateway of its own runs "
                "where it did.",
                "nothing to do",
                severity="low",
                path=path,
                line=line_of(text, (name, "gateways")),
                subject=(f"gateways.{name}",),
            )


def _gateways_added(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Gateways that only the new configuration has, and that nothing runs on by default.

    A model that asks for one by name is a changed model, and is judged as that.
    """
    before, after = (list(dict.fromkeys(filter(None, map(_gateway, side)))) for side in (old, new))
    # SQLMesh takes the first one where none is named.
    default = new.get("default_gateway") or next(iter(after), None)
    return set(after) - set(before) - {default} if before else set()


def _gateway(key: str) -> str | None:
    """The gateway that a setting belongs to."""
    parts = key.split("\x00")
    return parts[1] if parts[0] == "gateways" and len(parts) > 1 else None


def is_project_yaml(inputs: RuleInputs, path: str) -> bool:
    """Whether a file is the YAML configuration of one of the projects."""
    return PurePosixPath(path).name in _FILES and inputs.in_project(path) in _FILES


def _observations(settings: Iterable[Setting], path: str, text: str) -> Iterator[Observation]:
    """One observation for all settings that do the same."""
    alike: dict[SettingJudgement, list[Setting]] = {}
    for setting in settings:
        judgement = judged(setting[0].split("\x00"), setting[1], setting[2])
        if judgement is not None:
            alike.setdefault(judgement, []).append(setting)
    for (spec, severity, effect, clears), members in alike.items():
        told = [
            f"`{(name := key.replace(chr(0), '.'))}` from {_shown(name, before)} to "
            f"{_shown(name, after)}"
            for key, before, after in members[:SETTINGS_SHOWN]
        ]
        rest = len(members) - len(told)
        first = members[0][0].split("\x00")
        yield Observation(
            spec,
            f"{', '.join(told)}{f' and {rest} more' if rest > 0 else ''}: {effect}.",
            clears,
            severity=severity,
            path=path,
            line=line_of(text, (first[-1], first[0])),
            subject=tuple(key.replace("\x00", ".") for key, _, _ in members),
        )


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if is_suspect(name):
        return "(not shown)"
    if _STAND_IN.search(str(value)):
        return "a template"
    # Cut after hiding: half a credential no longer has its form.
    text = hide(str(value).replace("\n", " "))
    return f"`{shortened(text, SHOWN)}`"


@on_project(*SETTINGS)
def changed_objects(inputs: RuleInputs) -> Iterator[Observation]:
    """The weightiest settings of a config.py, where both configurations are known."""
    old, new = inputs.config_before, inputs.config_after
    path = next(
        (p for p in inputs.changed_files or () if PurePosixPath(p).name == "config.py"), None
    )
    if old is None or new is None or path is None:
        return
    settings: list[Setting] = [
        (key, value, new.settings[key])
        for key, value in old.settings.items()
        if value != new.settings[key]
    ]
    text = inputs.text_after(path) or ""
    yield from _observations(settings, path, text)


@on_file(SINGLE_WRITER)
def single_writer(inputs: RuleInputs) -> Iterator[Observation]:
    """A state in DuckDB or SQLite that the change introduces, with several tasks writing to it."""
    for path in inputs.changed_files or ():
        if not is_project_yaml(inputs, path):
            continue
        old = read(inputs.text_before(path)) or {}
        new = read(inputs.text_after(path))
        for key, tasks in single_writer_states(new or {}):
            if old.get(key) == (new or {}).get(key):
                continue
            text = inputs.text_after(path) or ""
            yield Observation(
                SINGLE_WRITER,
                f"The state is a file for one writer, and the connection runs {tasks} tasks at a "
                "time: a second run, or a colleague, waits or fails with a lock.",
                "the state is on a database server such as PostgreSQL",
                path=path,
                line=line_of(text, ("state_connection", "type: duckdb", "type: sqlite")),
                subject=(key.replace("\x00", "."),),
            )


def single_writer_states(settings: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """(key, concurrent tasks) of each state connection that allows one writer only.

    For `ci-bot doctor` too, which judges the project and not the change.
    """
    for key, value in settings.items():
        parts = key.split("\x00")
        if parts[-2:] != ["state_connection", "type"] or value not in {"duckdb", "sqlite"}:
            continue
        tasks_key = "\x00".join([*parts[:-2], "connection", "concurrent_tasks"])
        tasks = settings.get(tasks_key, 4)
        if isinstance(tasks, int) and tasks > 1:
            yield key, tasks
