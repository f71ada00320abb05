"""What a recording keeps of a document, and what of it would differ at the next recording.

Kept is what the worker and the bot have said: texts, names, counts, table names, plan ids. Four things are
of the moment or of the machine, and get a value that is always the same:

- durations and measured times: `seconds`, executors' times, expected ones too, the values of
  `timings`, and the time that a step's message says it took
- when something goes, which counts from now: `until` and `expires_at`
- sizes on disk and in memory: `bytes`, `bytes_reclaimed`, what Spark has shuffled, and its peak
- versions of programs, also where a sentence names one

A path of the machine is none of these: a document that holds one is not recorded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ci_bot.protocol.base import Contract

SECONDS = 1.5
# A whole apply or cleanup.
WHOLE_SECONDS = 90.0
EXECUTOR_HOURS = 0.25
CORES = 2
USED_SHARE = 0.5
BYTES = 1_048_576
LATER = "2014-01-09T00:00:00Z"
_CONSTANT = {
    "seconds": SECONDS,
    "executor_hours": EXECUTOR_HOURS,
    "allocated_hours": EXECUTOR_HOURS,
    "executor_hours_low": EXECUTOR_HOURS * 0.6,
    "executor_hours_mid": EXECUTOR_HOURS,
    "executor_hours_high": EXECUTOR_HOURS * 1.6,
    "core_hours": EXECUTOR_HOURS * CORES,
    "used_share": USED_SHARE,
    "used_seconds": SECONDS,
    "cpu_seconds": SECONDS,
    "executor_seconds": SECONDS,
    "until": LATER,
    "expires_at": LATER,
    "bytes": BYTES,
    "bytes_reclaimed": BYTES,
    "shuffle_read_bytes": BYTES,
    "shuffle_write_bytes": BYTES,
    "peak_memory_bytes": BYTES,
}
_TOOK = re.compile(r"\bin \d+\.\d+s\b")
_VERSIONS = {
    "ci_bot": "0.1.0",
    "python": "3.11.9",
    "sqlmesh": "0.236.4",
    "sqlglot": "30.0.1",
    "pyspark": "3.5.8",
    "java": "17.0.9",
    "state_sqlmesh": "0.236.4",
}


class MachineInRecordingError(Exception):
    """The document names a path of this machine."""


def stable(document: Contract, *places: Path) -> str:
    """The document as JSON that the next recording repeats, ending in a newline.

    Args:
        places: Directories of this machine, which must not be in it.

    Raises:
        MachineInRecordingError: one of them is.
    """
    content = json.loads(document.to_json())
    steady = _steady(content)
    if content.get("seconds") is not None:
        steady["seconds"] = WHOLE_SECONDS
    text = _TOOK.sub(f"in {SECONDS}s", json.dumps(steady, indent=1, ensure_ascii=False))
    text = _with_versions(text, content.get("versions", {}))
    for place in places:
        if str(place) in text:
            raise MachineInRecordingError(f"{place} is in it")
    return f"{text}\n"


def _steady(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        if key == "timings":
            return dict.fromkeys(value, SECONDS)
        return {name: _steady(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    return value if value is None else _CONSTANT.get(key, value)


def _with_versions(text: str, versions: dict[str, Any]) -> str:
    """`text` with the versions that the document was made with replaced by those above."""
    found = {
        str(version): _VERSIONS[name]
        for name, version in versions.items()
        # Where no worker has answered, its versions are "unknown".
        if name in _VERSIONS and str(version)[:1].isdigit()
    }
    if not found:
        return text
    any_of = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    return re.sub(rf"(?<![\d.])(?:{any_of})(?![\d.])", lambda hit: found[hit[0]], text)
