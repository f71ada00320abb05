"""What prod is built from, started by, guarded by and stands on, beside models and settings.

No plan shows it. A file of a known kind is compared as that kind; what is known to change nothing
there (comments, names, labels, more memory) is passed over, and all else is for a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from ci_bot.file_patterns import CODEOWNERS_PLACES
from ci_bot.protocol.limits import is_read
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.files.code_owners import list_owner_differences
from ci_bot.worker.rules.files.deployment_texts import (
    is_requirements_file,
    list_checkout_differences,
    list_image_differences,
    list_image_exclusions,
    list_infrastructure_differences,
    list_package_differences,
    list_script_differences,
    list_site_differences,
    read_spark_properties,
)
from ci_bot.worker.rules.files.deployment_yaml import (
    Difference,
    is_manifest,
    list_manifest_differences,
    list_workflow_differences,
    show_change,
)
from ci_bot.worker.rules.files.other_settings import CONFIRM
from ci_bot.worker.rules.files.settings import SPARK
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file
from ci_bot.worker.sql_effects import find_setting_meaning

CHANGED = find_rule("deployment-changed")
_CLEARS = "the owner of the deployment confirms it"

# Files that run, and that nobody can read in a review.
_BINARIES = frozenset(
    {".whl", ".egg", ".jar", ".war", ".so", ".dll", ".dylib", ".pyd", ".pyc", ".exe", ".bin"}
)
_WORKFLOW = re.compile(r"^\.github/workflows/[^/]+\.ya?ml$")
_IMAGE = re.compile(r"(^|[./-])(dockerfile|containerfile)([./-]|$)", re.IGNORECASE)
_SITE = re.compile(r"-site\.xml$")
_SHELLS = frozenset({".sh", ".bash", ".zsh"})
_SHEBANG = re.compile(r"#!\S*/(env +)?\S*sh\b")
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "node_modules", "__pycache__", ".cache"})
MOST_FILES = 20_000


@on_file(CHANGED)
def find_deployment_changes(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Files that decide how prod is built, started and guarded, and that do it otherwise."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix.lower() in _BINARIES:
            yield from _observe_binary(inputs, path)
            continue
        if not is_read(path):
            continue
        before, after = inputs.read_text_before(path), inputs.read_text_after(path)
        for difference in _list_differences(inputs, path, before, after):
            yield RuleObservation(
                CHANGED,
                f"{difference.sentence}.",
                _CLEARS,
                path=path,
                line=find_anchor_line(after or "", filter(None, (difference.anchor,))) or 1,
                subject=(difference.anchor, difference.sentence[:80]),
            )


def _observe_binary(inputs: RuleInputs, path: str) -> Iterator[RuleObservation]:
    if (inputs.repository / path).is_file():
        yield RuleObservation(
            CHANGED,
            f"`{path}` holds code that no review can read, and it is new or another one: its name "
            "and version may be as before.",
            "its content is known by the place that built it",
            path=path,
            line=1,
            subject=("binary",),
        )


def _list_differences(  # noqa: PLR0911 - one line for each kind of file reads best
    inputs: RuleInputs, path: str, before: str | None, after: str | None
) -> Iterator[Difference]:
    name = PurePosixPath(path).name
    if _WORKFLOW.match(path):
        return list_workflow_differences(before, after)
    if after is None:
        return iter(())
    if name == ".dockerignore":
        return list_image_exclusions(before, after, _list_files(inputs.repository))
    if name == ".gitattributes":
        return list_checkout_differences(before, after, _list_files(inputs.repository))
    if _is_shell(path, after):
        return list_script_differences(before, after)
    if before is None:
        return iter(())
    if path in CODEOWNERS_PLACES:
        return list_owner_differences(before, after, _list_files(inputs.repository))
    if _IMAGE.search(name):
        return list_image_differences(before, after)
    if PurePosixPath(path).suffix in {".tf", ".hcl", ".tfvars"}:
        return list_infrastructure_differences(before, after)
    if _SITE.search(name):
        return list_site_differences(before, after)
    if is_requirements_file(path):
        return list_package_differences(before, after)
    if PurePosixPath(path).suffix in {".yaml", ".yml"} and is_manifest(after):
        return list_manifest_differences(before, after)
    return iter(())


def _is_shell(path: str, text: str) -> bool:
    return PurePosixPath(path).suffix in _SHELLS or _SHEBANG.match(text) is not None


@lru_cache(maxsize=2)
def _list_files(repository: Path) -> tuple[str, ...]:
    """The files of the checkout, relative to it; of a large one, some."""
    found: list[str] = []
    for folder, folders, names in os.walk(repository):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        at = Path(folder).relative_to(repository)
        found += [(at / name).as_posix() for name in names]
        if len(found) >= MOST_FILES:
            break
    return tuple(found[:MOST_FILES])


@on_file(SPARK)
def find_spark_file_settings(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Settings in a spark-defaults.conf that reach values or places, as in a connection."""
    for path in inputs.changed_files or ():
        if PurePosixPath(path).suffix not in {".conf", ".properties"}:
            continue
        text = inputs.read_text_after(path)
        old, new = (
            read_spark_properties(one or "") for one in (inputs.read_text_before(path), text)
        )
        for key in sorted(old.keys() | new.keys()):
            was, now = old.get(key), new.get(key)
            if was == now or not _reaches_data(key, str(was if now is None else now)):
                continue
            yield RuleObservation(
                SPARK,
                f"{show_change((key,), was, now)}: the same query may give other results, or read "
                "and write elsewhere.",
                CONFIRM,
                path=path,
                line=find_anchor_line(text or "", (key,)),
                subject=(key,),
            )


def _reaches_data(key: str, value: str) -> bool:
    meaning = find_setting_meaning(key, value)
    unknown = meaning == "unknown" and key.lower().startswith("spark.sql.")
    return unknown or meaning in ("values", "places")
