"""Pipelines of GitLab, Azure, Bitbucket and CircleCI, services of Compose, and values of Helm: what
differs between two versions, by one table.

Keys are those of https://docs.gitlab.com/ci/yaml, https://learn.microsoft.com/azure/devops/pipelines,
https://support.atlassian.com/bitbucket-cloud/docs, https://circleci.com/docs/configuration-reference,
https://docs.docker.com/reference/compose-file and https://helm.sh/docs/topics/charts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ci_bot.worker.rules.files.deployment_yaml import (
    CHECK_IS_LOST,
    CHECKS,
    OF_LOGS,
    REACHES_PROD,
    SQLMESH_RUNS,
    Difference,
    list_changed_pairs,
    read_pairs,
    read_size,
    show_change_of_deployment_file,
)


@dataclass(frozen=True)
class DeploymentFormat:
    """A kind of YAML file by which prod is deployed or run.

    Attributes:
        path: what the path of such a file looks like.
        means_prod: what the text of such a file has if it can reach prod.
        passed: keys that change nothing that prod does: names, caches, reports.
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


def find_format(path: str, repository: Path) -> DeploymentFormat | None:
    """Finds the format of a file; values of Helm are those beside a chart."""
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
) -> Iterator[Difference]:
    """What a file of a known format does otherwise, if it can reach prod."""
    if not any(map(known.means_prod.search, (before, after))):
        return
    old, new = read_pairs(before), read_pairs(after)
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
                yield Difference(
                    path[-1],
                    f"{show_change_of_deployment_file(path, was, now)}: what needs more is killed",
                )
        else:
            yield Difference(
                path[-1], f"{show_change_of_deployment_file(path, was, now)}: {known.effect}"
            )


def _judge_command(path: tuple[str, ...], was: str | None, now: str | None) -> Iterator[Difference]:
    """A check that is gone or another one, and what newly runs beside the deployment."""
    shown = show_change_of_deployment_file(path, was, now)
    if any(text is not None and SQLMESH_RUNS.search(text) for text in (was, now)):
        return
    if was is not None and CHECKS.search(was):
        yield Difference(path[-1], f"{shown}: {CHECK_IS_LOST}")
    elif was is None:
        yield Difference(path[-1], f"{shown}: what runs beside the deployment")


def _is_smaller(was: str | None, now: str | None, *, is_time: bool) -> bool:
    if now is None or was is None:
        return was is not None if not is_time else now is not None
    read = _read_seconds if is_time else read_size
    return read(now) < read(was)


def _read_seconds(text: str) -> float:
    """Reads `1h 30m`, `90 minutes` or a plain number; the units of one file are alike."""
    return sum(
        float(number) * _SECONDS.get(unit.lower()[:1], 60.0)
        for number, unit in _DURATION.findall(text)
    )
