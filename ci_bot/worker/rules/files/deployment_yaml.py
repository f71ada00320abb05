"""YAML files by which prod is deployed and run: the differences between two versions.

They are workflows, manifests, pipelines, services of Compose and values of Helm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ci_bot.jinja_text import replace_templates
from ci_bot.redaction import is_name_of_secret, redact_shapes, shorten_redacted
from ci_bot.yaml_reader import read_yaml_or_none


class DeploymentDifference(NamedTuple):
    """One difference: the word to look for in the file, and a sentence without its end."""

    anchor: str
    sentence: str


# The path of a value without positions in lists, and the value.
_Pair = tuple[tuple[str, ...], str]

_MANIFEST_KINDS = frozenset(
    {"CronJob", "Job", "Deployment", "StatefulSet", "DaemonSet", "Pod", "ConfigMap", "Workflow",
     "CronWorkflow", "WorkflowTemplate", "SparkApplication", "ScheduledSparkApplication"}
)  # fmt: skip
# Keys that only people read; no container sees them.
_OF_PEOPLE = frozenset(
    {"name", "run-name", "description", "displayname", "labels", "annotations", "tags", "comment"}
)
OF_LOGS = re.compile(r"^(PYTHON\w+|LOG_?\w*|LOGLEVEL|FORCE_COLOR|NO_COLOR|TERM|CI)$")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(m|[kKMGT]i?)?")
_UNITS = {None: 1.0, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10,
          "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip

# Workflows that can reach prod, and the review itself.
REACHES_PROD = re.compile(
    r"\bsqlmesh\b|\bsecrets\.|\bterraform\b|\bspark-submit\b|\bdatabricks\b"
    r"|^[^\S\n]*environment[ \t]*:",
    re.MULTILINE,
)
OWN_ACTION = "sqlmesh-plan-review"
SQLMESH_RUNS = re.compile(r"\bsqlmesh(?:_cicd)?\s+(?:-\S+\s+){0,20}(?:plan|run|janitor|migrate)\b")
CHECK_IS_LOST = "a check is no longer run as it was"
CHECKS = re.compile(r"\b(test|tests|lint|check|verify|audit|scan|ci-bot)\b")
_PINNED = re.compile(r"@(?:[0-9a-f]{40}|v?\d[\w.-]*|sha256:[0-9a-f]+)$")


def list_differences_of_workflow_file(
    before: str | None, after: str | None
) -> Iterator[DeploymentDifference]:
    """Lists the differences of a workflow that can reach prod, or that reviews for it.

    Args:
        before, after: the file's text; None if there is none.
    """
    texts = [text for text in (before, after) if text is not None]
    is_review = any(OWN_ACTION in text for text in texts)
    if not is_review and not any(map(REACHES_PROD.search, texts)):
        return
    if after is None:
        what = "the review of this project" if is_review else "what it did for prod"
        yield DeploymentDifference("", f"The workflow is gone, and {what} with it")
        return
    new = read_deployment_values(after)
    if before is None:
        if _does_workflow_run_foreign_code(new) and "secrets." in after:
            yield DeploymentDifference("pull_request_target", _OTHERS_CODE)
        return
    old = read_deployment_values(before)
    if old is None or new is None:
        return
    if _does_workflow_run_foreign_code(new) and not _does_workflow_run_foreign_code(old):
        yield DeploymentDifference("pull_request_target", _OTHERS_CODE)
    changes_prod = any(map(SQLMESH_RUNS.search, texts))
    for path, was, now in list_changed_pairs(old, new):
        told = _judge_workflow_file(path, was, now, changes_prod=changes_prod)
        if told is not None:
            yield told


_OTHERS_CODE = (
    "It runs for `pull_request_target`, with secrets, and anybody who opens a pull request may "
    "have their code run with them"
)


def _does_workflow_run_foreign_code(pairs: Counter[_Pair] | None) -> bool:
    return any(
        path[0] == "on" and "pull_request_target" in (*path, value) for path, value in pairs or ()
    )


# GitHub's own limit of a job; and one that hardly does more than end a job that hangs.
_USUAL_MINUTES, _LONG_MINUTES = "360", 180


def _judge_workflow_file(  # noqa: PLR0911 - one line for each kind of key reads best
    path: tuple[str, ...], was: str | None, now: str | None, *, changes_prod: bool
) -> DeploymentDifference | None:
    key = path[-1]
    shown = show_change_of_deployment_file(path, was, now)
    if path[0] == "on":
        return _judge_trigger(path, was, now, shown)
    if "permissions" in path:
        is_more = now not in {None, "{}", "none"} and (was is None or "write" in str(now))
        return DeploymentDifference(key, f"{shown}: what its token may do") if is_more else None
    if key == "timeout-minutes":
        limit = read_memory_size(now or _USUAL_MINUTES)
        is_shorter = limit < (_LONG_MINUTES if was is None else read_memory_size(was))
        return (
            DeploymentDifference(key, f"{shown}: what takes longer is killed")
            if is_shorter
            else None
        )
    if "concurrency" in path:
        if not changes_prod:
            return None
        return DeploymentDifference(
            key, f"{shown}: which runs wait for each other, or end one another"
        )
    if key == "uses":
        is_loose = now is not None and "@" in now and not _PINNED.search(now)
        is_other = _name_action(was) != _name_action(now) and changes_prod
        if is_loose or is_other:
            return DeploymentDifference(key, f"{shown}: code that others may change runs there")
        return None
    if key == "run":
        # Commands that run SQLMesh are compared one by one (`run_commands`).
        lost = was is not None and CHECKS.search(was) and "sqlmesh" not in was
        gained = now is not None and was is None and changes_prod and "sqlmesh" not in now
        if lost:
            return DeploymentDifference("run", f"{shown}: {CHECK_IS_LOST}")
        return (
            DeploymentDifference("run", f"{shown}: what runs beside the deployment")
            if gained
            else None
        )
    if "env" in path or "with" in path:
        if OF_LOGS.match(key):
            return None
        return DeploymentDifference(key, f"{shown}: programs there get another value")
    return None


def _judge_trigger(
    path: tuple[str, ...], was: str | None, now: str | None, shown: str
) -> DeploymentDifference | None:
    key = path[-1]
    if "pull_request_target" in path or "schedule" in path or "workflow_dispatch" in path:
        return None  # reported elsewhere, or started by hand
    narrows = key in {"paths", "paths-ignore", "branches-ignore", "tags"} or (
        key in {"branches", "types"} and was is not None
    )
    if not narrows and (was is None or now is not None):
        return None
    return DeploymentDifference(
        key if narrows else "on", f"{shown}: it does not run for every change as it did"
    )


def _name_action(uses: str | None) -> str | None:
    return None if uses is None else uses.partition("@")[0]


def is_manifest_file(text: str) -> bool:
    """Whether a YAML text describes a workload of Kubernetes."""
    return "apiVersion:" in text and any(
        re.search(rf"^kind:\s*[\"']?{kind}\b", text, re.MULTILINE) for kind in _MANIFEST_KINDS
    )


def list_differences_of_manifest_file(before: str, after: str) -> Iterator[DeploymentDifference]:
    """Lists the differences of a workload, except names, labels, and more memory or processors."""
    old, new = read_deployment_values(before), read_deployment_values(after)
    if old is None or new is None:
        return
    for path, was, now in list_changed_pairs(old, new):
        if OF_LOGS.match(path[-1]) or (
            "resources" in path
            and (
                was is None or (now is not None and read_memory_size(now) >= read_memory_size(was))
            )
        ):
            continue
        yield DeploymentDifference(
            path[-1],
            f"{show_change_of_deployment_file(path, was, now)}: what runs prod is another one",
        )


def read_deployment_values(text: str) -> Counter[_Pair] | None:
    """Every value with its path; None if the text is not YAML. Templates are words."""
    pairs: Counter[_Pair] = Counter()
    bare = replace_templates(text, lambda template: f"'{write_template_on_one_line(template)}'")
    bare = text if read_yaml_or_none(bare) is None else bare
    for document in re.split(r"^---[^\S\n]*$", bare, flags=re.MULTILINE):
        if not document.strip():
            continue
        found = read_yaml_or_none(document)
        if found is None:
            return None
        is_secret = isinstance(found, dict) and found.get("kind") == "Secret"
        pairs.update(_iterate_pairs_of_deployment_yaml(found, ("Secret",) if is_secret else ()))
    return pairs


def write_template_on_one_line(template: str) -> str:
    """Returns a template as one line without quotes."""
    return " ".join(template.split()).replace("'", "\u2019")


def _iterate_pairs_of_deployment_yaml(value: Any, path: tuple[str, ...]) -> Iterator[_Pair]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            if str(key).lower() not in _OF_PEOPLE or isinstance(inner, dict | list) is (
                str(key) == "name"
            ):
                yield from _iterate_pairs_of_deployment_yaml(inner, (*path, str(key)))
    elif isinstance(value, list) and value:
        for option, inner in pairwise(("", *map(_name_variable, value))):
            takes_secret = str(option).startswith("-") and is_name_of_secret(str(option))
            yield from _iterate_pairs_of_deployment_yaml(
                inner, (*path, str(option)) if takes_secret else path
            )
    elif path:
        yield path, " ".join(str(value).split())


def _name_variable(item: Any) -> Any:
    """Turns `{name: X, value: y}` of Kubernetes into `{X: y}`: the name says what the value is."""
    if isinstance(item, Mapping) and set(item) <= {"name", "value", "valueFrom"} and "name" in item:
        return {str(item["name"]): item.get("value", item.get("valueFrom"))}
    return item


def list_changed_pairs(
    old: Counter[_Pair], new: Counter[_Pair]
) -> Iterator[tuple[tuple[str, ...], str | None, str | None]]:
    """Yields (path, value before, value after) of each difference.

    A lost and a new value at one path are one difference; None if there is no value on that side.
    """
    lost, gained = (list((a - b).elements()) for a, b in ((old, new), (new, old)))
    left: dict[tuple[str, ...], list[str]] = {}
    for path, value in gained:
        left.setdefault(path, []).append(value)
    for path, value in lost:
        after = left.get(path)
        yield path, value, after.pop(0) if after else None
    for path, values in left.items():
        for value in values:
            yield path, None, value


def show_change_of_deployment_file(path: tuple[str, ...], was: str | None, now: str | None) -> str:
    """Shows a changed setting in a report, by the names that lead to it; it shows no secret."""
    name = ".".join(path[-2:])
    before, after = (_show_value_of_deployment_yaml(path, one) for one in (was, now))
    return f"`{name}` goes from {before} to {after}"


_SHOWN = 100
_WORD = re.compile(r"[^\s\"'=:,;\[\]{}()<>|&/]+")
_SIGNED_IN = re.compile(r"(?<=://)[^/\s@]{1,200}@")
# The value of a switch is no secret, also if its name looks like one.
_SWITCHES = frozenset({"true", "false", "read", "write", "none", "{}", "0", "1"})


def _show_value_of_deployment_yaml(names: tuple[str, ...], value: str | None) -> str:
    # These files hold commands and lines of any form, in which patterns do not find every secret.
    if value is None:
        return "nothing"
    if value not in _SWITCHES and any(map(is_name_of_secret, (*names, *_WORD.findall(value)))):
        return "`(not shown)`"
    return show_text_of_deployment_file(value)


def show_line_of_deployment_file(line: str) -> str:
    """Shows a line in a report; only its first word if it may hold a secret."""
    words = line.split()
    if any(map(is_name_of_secret, _WORD.findall(line))):
        return f"`{words[0]} (not shown)`"
    return show_text_of_deployment_file(line)


def show_text_of_deployment_file(text: str) -> str:
    """Shows a text in a report that has no names of its own, such as a path."""
    hidden = _SIGNED_IN.sub("***@", redact_shapes(" ".join(text.split())).replace("`", "'"))
    return f"`{shorten_redacted(hidden, _SHOWN)}`"


def read_memory_size(text: str) -> float:
    found = _SIZE.fullmatch(text.strip())
    return float(found[1]) * _UNITS[found[2]] if found is not None else -1.0


@dataclass(frozen=True)
class DeploymentFormat:
    """A kind of YAML file by which prod is deployed or run.

    Attributes:
        path: the pattern for the path of such a file.
        means_prod: the pattern that the text of such a file matches if it can reach prod.
        passed: keys with no effect on prod: names, caches, reports.
        commands: keys of shell commands; those of SQLMesh are compared by another rule.
        limits: keys of times; only a shorter one counts.
        effect: what another value does.
    """

    path: re.Pattern[str]
    means_prod: re.Pattern[str]
    passed: frozenset[str]
    effect: str
    commands: frozenset[str] = frozenset()
    limits: frozenset[str] = frozenset()


_RUNS = "when, where or with which values a step of the deployment runs is another one"
_OF_CODE = re.compile(
    rf"{REACHES_PROD.pattern}|\bspark\b|\$\{{?[A-Z_]*(?:TOKEN|PASSWORD|SECRET)", re.M
)
_OF_SERVICES = re.compile(r"\b(?:sqlmesh|spark|metastore|hive)\b")
_NAMED = frozenset({"stage", "stages", "cache", "artifacts", "coverage", "retry", "displayname",
                    "reports", "expire_in", "paths", "key", "store_artifacts"})  # fmt: skip
FORMATS = (
    DeploymentFormat(
        re.compile(r"(^|/)\.gitlab-ci[^/]*\.ya?ml$|(^|/)\.gitlab/.*\.ya?ml$"),
        _OF_CODE,
        _NAMED,
        _RUNS,
        frozenset({"script", "before_script", "after_script"}),
        frozenset({"timeout"}),
    ),
    DeploymentFormat(
        re.compile(r"(^|/)azure-pipelines[^/]*\.ya?ml$|(^|/)\.azure(-pipelines|devops)?/.*\.ya?ml$"),
        _OF_CODE,
        _NAMED,
        _RUNS,
        frozenset({"script", "bash", "pwsh", "powershell", "inlinescript"}),
        frozenset({"timeoutinminutes", "canceltimeoutinminutes"}),
    ),
    DeploymentFormat(
        re.compile(r"(^|/)bitbucket-pipelines\.ya?ml$"),
        _OF_CODE,
        _NAMED | {"caches"},
        _RUNS,
        frozenset({"script", "after-script"}),
        frozenset({"max-time"}),
    ),
    DeploymentFormat(
        re.compile(r"(^|/)\.circleci/[^/]+\.ya?ml$"),
        _OF_CODE,
        _NAMED | {"save_cache", "restore_cache", "persist_to_workspace"},
        _RUNS,
        frozenset({"run", "command"}),
        frozenset({"no_output_timeout"}),
    ),
    DeploymentFormat(
        re.compile(r"(^|/)(docker-)?compose(?![^/]*(dev|local|test|override))[^/]*\.ya?ml$", re.I),
        _OF_SERVICES,
        frozenset({"healthcheck", "restart", "logging", "container_name", "expose", "stdin_open",
                   "tty", "version", "profiles"}),
        "a service that runs the project, or that it reads and writes, is another one",
    ),
)  # fmt: skip
_VALUES = DeploymentFormat(
    re.compile(r"(^|/)values[^/]*\.ya?ml$"),
    re.compile(r""),
    frozenset({"replicacount", "nodeselector", "tolerations", "affinity", "imagepullpolicy",
               "podannotations", "fullnameoverride", "nameoverride", "livenessprobe",
               "readinessprobe"}),
    "the workload that Helm makes of it is another one",
)  # fmt: skip
_CHART_FOLDERS = frozenset({"helm", "chart", "charts"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)?", re.IGNORECASE)
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def find_deployment_format(path: str, repository: Path) -> DeploymentFormat | None:
    """Finds the format of a file; None if it has none. Values of Helm are those beside a chart."""
    for known in FORMATS:
        if known.path.search(path):
            return known
    folder = PurePosixPath(path).parent
    in_chart = not _CHART_FOLDERS.isdisjoint(folder.parts) or any(
        (repository / part / "Chart.yaml").is_file() for part in (folder, *folder.parents)
    )
    return _VALUES if _VALUES.path.search(path) and in_chart else None


def list_pipeline_differences(
    known: DeploymentFormat, before: str, after: str
) -> Iterator[DeploymentDifference]:
    """Lists the differences of a file of a known format, if it can reach prod."""
    if not any(map(known.means_prod.search, (before, after))):
        return
    old, new = read_deployment_values(before), read_deployment_values(after)
    if old is None or new is None:
        return
    for path, was, now in list_changed_pairs(old, new):
        words = [part.lower() for part in path]
        if OF_LOGS.match(path[-1]) or not known.passed.isdisjoint(words):
            continue
        if not known.commands.isdisjoint(words):
            yield from _judge_command(path, was, now)
        elif words[-1] in known.limits or "resources" in words:
            if _is_smaller(was, now, is_time=words[-1] in known.limits):
                yield DeploymentDifference(
                    path[-1],
                    f"{show_change_of_deployment_file(path, was, now)}: what needs more is killed",
                )
        else:
            yield DeploymentDifference(
                path[-1], f"{show_change_of_deployment_file(path, was, now)}: {known.effect}"
            )


def _judge_command(
    path: tuple[str, ...], was: str | None, now: str | None
) -> Iterator[DeploymentDifference]:
    """Yields a check that is gone or changed, and a new command beside the deployment."""
    shown = show_change_of_deployment_file(path, was, now)
    if any(text is not None and SQLMESH_RUNS.search(text) for text in (was, now)):
        return
    if was is not None and CHECKS.search(was):
        yield DeploymentDifference(path[-1], f"{shown}: {CHECK_IS_LOST}")
    elif was is None:
        yield DeploymentDifference(path[-1], f"{shown}: what runs beside the deployment")


def _is_smaller(was: str | None, now: str | None, *, is_time: bool) -> bool:
    if now is None or was is None:
        return was is not None if not is_time else now is not None
    read = _read_seconds if is_time else read_memory_size
    return read(now) < read(was)


def _read_seconds(text: str) -> float:
    """Reads `1h 30m`, `90 minutes` or a plain number; both versions of a file use the same unit."""
    return sum(
        float(number) * _SECONDS.get(unit.lower()[:1], 60.0)
        for number, unit in _DURATION.findall(text)
    )
