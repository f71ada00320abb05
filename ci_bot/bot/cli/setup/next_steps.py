"""What a person has to do after `ci-bot init`, as commands to paste. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ci_bot.bot.cli.setup.github_settings import ENVIRONMENTS, SetupJob, list_github_settings
from ci_bot.bot.cli.setup.plan_files import IMAGE_PYTHON, SetupRequest, list_unknown_imports
from ci_bot.protocol.supported_versions import (
    PYSPARK_VERSIONS_TEXT,
    WAY_OUT,
    describe_unsupported,
    find_source_requirement,
    is_supported,
)

CHECK = "Review the plan"
PULL_REQUEST_BRANCH = "sqlmesh-plan-review"
_JOBS: dict[str, tuple[SetupJob, ...]] = {
    "review": ("review",),
    "apply": ("review", "apply", "cleanup"),
    "full": ("review", "apply", "cleanup", "deploy"),
}
_RIGHTS = {"postgres": "rights-postgres.sql", "gcp_postgres": "rights-postgres.sql",
           "mysql": "rights-mysql.sql"}  # fmt: skip
_DOCS = "docs/bundled-bot.md"


@dataclass(frozen=True)
class RemainingSetupStep:
    """Something that a person has to do.

    Attributes:
        commands: Lines to paste as they are.
    """

    title: str
    why: str
    commands: tuple[str, ...] = ()


def list_remaining_setup_steps(
    request: SetupRequest, written: Sequence[str], load: Callable[[str], str | None]
) -> list[RemainingSetupStep]:
    """Lists what is left to do, in order.

    Args:
        written: The files of this run that have to be committed.
        load: Returns the text of a template file by its name.
    """
    steps = []
    if request.level != "review":
        steps += [
            *_list_steps_for_state_rights(request, load),
            _make_step_for_environments(request),
            *_list_steps_for_secrets_and_variables(request),
        ]
    if request.level == "review":
        steps += _list_steps_for_secrets_and_variables(request)
    if written:
        steps.append(_make_step_for_pull_request(request, written))
    steps.append(_make_step_for_required_check())
    if request.level != "review":
        projects = " ".join(f"--project {each.path}" for each in request.repository.projects)
        steps.append(
            RemainingSetupStep(
                "Look before the first apply",
                "On a machine that reaches the state and the cluster, with the same variables. It "
                "changes nothing.",
                (f"ci-bot doctor {projects}",),
            )
        )
    return steps


def list_notes_after_setup(request: SetupRequest) -> list[str]:
    """Lists what a person should know about this repository, in one or two sentences each."""
    return [
        *_list_notes_on_release(request),
        *_list_notes_on_versions(request),
        *_list_notes_on_state(request),
        *_list_notes_on_old_bot(request),
        *_list_notes_on_reading(request),
    ]


def _list_steps_for_state_rights(
    request: SetupRequest, load: Callable[[str], str | None]
) -> Iterator[RemainingSetupStep]:
    script = load(_RIGHTS.get(request.state_type or "", ""))
    if script:
        yield RemainingSetupStep(
            "Give two accounts their rights on the state database",
            "Run this as the database's owner, with passwords and names of your own: the first "
            "account reads for reviews, the second one writes for applies and cleanups. "
            "docs/state.md explains each line.",
            tuple(script.rstrip().splitlines()),
        )


def _make_step_for_environments(request: SetupRequest) -> RemainingSetupStep:
    lines = []
    for job in _JOBS[request.level]:
        name = ENVIRONMENTS[job]
        address = f"repos/{{owner}}/{{repo}}/environments/{name}"
        if job == "review":
            lines.append(f"gh api --silent --method PUT {address}")
            continue
        policy = json.dumps(
            {"deployment_branch_policy": {"protected_branches": False,
                                          "custom_branch_policies": True}}
        )  # fmt: skip
        branch = request.repository.branch
        lines += [
            f"echo '{policy}' | gh api --silent --method PUT {address} --input -",
            f"gh api --silent --method POST {address}/deployment-branch-policies -f name={branch}",
        ]
    return RemainingSetupStep(
        "Make the GitHub environments",
        "They keep the accounts apart. All but the one for reviews are limited to the default "
        "branch. Add required reviewers to sqlmesh-apply or sqlmesh-prod under Settings > "
        "Environments if you want them; sqlmesh-cleanup must have none.",
        tuple(lines),
    )


def _list_steps_for_secrets_and_variables(request: SetupRequest) -> Iterator[RemainingSetupStep]:
    """Yields the secrets and variables; one that several jobs share is the repository's."""
    secrets: list[str] = []
    shared: dict[str, str] = {}
    own: list[str] = []
    optional: list[str] = []
    for job in _JOBS[request.level]:
        for setting in list_github_settings(request.used_variables, request.level, job):
            environment = ENVIRONMENTS[job]
            if setting.source == "secrets":
                secrets.append(f"gh secret set {setting.github} --env {environment}")
            elif "||" in setting.value:
                optional.append(setting.github)
            elif setting.source == "vars" and job == "deploy" and setting.github != setting.name:
                own.append(f"gh variable set {setting.github} --env {environment}")
            elif setting.source == "vars":
                shared[setting.github] = f"gh variable set {setting.github}"
    lines = dict.fromkeys([*shared.values(), *own, *secrets])
    if lines:
        yield RemainingSetupStep(
            "Set the variables and secrets",
            "Each command asks for the value. What ends in READER is of the account that reads, "
            "what ends in WRITER of the one that writes; prod's own are in sqlmesh-prod."
            if request.level == "full"
            else "Each command asks for the value. What ends in READER is of the account that "
            "reads, what ends in WRITER of the one that writes.",
            tuple(lines),
        )
    if optional:
        yield RemainingSetupStep(
            "Set variables that models read, if any do",
            "A review works without them: it connects with nothing that they name.",
            tuple(f"gh variable set {name}" for name in dict.fromkeys(optional)),
        )


def list_setup_commands_for_pull_request(paths: Sequence[str]) -> list[list[str]]:
    """Lists the commands that open a pull request with these files, in order."""
    return [
        ["git", "switch", "--create", PULL_REQUEST_BRANCH],
        ["git", "add", *paths],
        ["git", "commit", "--message", "Review the SQLMesh plans of pull requests", "--", *paths],
        ["git", "push", "--set-upstream", "origin", PULL_REQUEST_BRANCH],
        ["gh", "pr", "create", "--fill"],
    ]


def _make_step_for_pull_request(
    request: SetupRequest, written: Sequence[str]
) -> RemainingSetupStep:
    commands = tuple(map(shlex.join, list_setup_commands_for_pull_request(written)))
    first = (
        "The pull request that you open is the first that is reviewed."
        if request.level == "review"
        else "The review runs on this pull request already; what builds and removes runs once it "
        "is merged."
    )
    return RemainingSetupStep("Open a pull request with these files", first, commands)


def _make_step_for_required_check() -> RemainingSetupStep:
    rules = {
        "name": "SQLMesh review",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
        "rules": [
            {
                "type": "required_status_checks",
                "parameters": {
                    "strict_required_status_checks_policy": False,
                    "required_status_checks": [{"context": CHECK}],
                },
            }
        ],
    }
    address = "repos/{owner}/{repo}/rulesets"
    return RemainingSetupStep(
        "Require the review, once you trust it",
        f"The check `{CHECK}` fails for a No-Go. The workflow also runs in a merge queue.",
        (f"echo '{json.dumps(rules)}' | gh api --silent --method POST {address} --input -",),
    )


def _list_notes_on_release(request: SetupRequest) -> Iterator[str]:
    if not request.release.is_released:
        yield (
            "This ci-bot was not installed from a release, so the workflows name a placeholder. "
            "Run the command again with `--action OWNER/NAME@COMMIT` of the repository that you "
            "use, or install ci-bot from it with pip and git."
        )


def _list_notes_on_versions(request: SetupRequest) -> Iterator[str]:
    repository = request.repository
    sqlmesh, pyspark = (repository.versions.get(name) for name in ("sqlmesh", "pyspark"))
    if sqlmesh and sqlmesh.version and not is_supported(sqlmesh.version):
        yield f"{describe_unsupported(f'{sqlmesh.file} has SQLMesh {sqlmesh.version}')} {WAY_OUT}"
    elif sqlmesh and sqlmesh.version is None:
        yield (
            f"{sqlmesh.file} allows several versions of SQLMesh ({sqlmesh.asked or 'any'}). Pin "
            "the one that prod is built with: a plan of another version can be another plan."
        )
    if pyspark and pyspark.version and find_source_requirement(pyspark.version) is None:
        yield (
            f"{pyspark.file} has PySpark {pyspark.version}, and applies work with "
            f"{PYSPARK_VERSIONS_TEXT}. Reviews need no Spark."
        )
    unknown = list_unknown_imports(request)
    if unknown:
        yield (
            f"The project imports {', '.join(unknown)}, which the image does not have. Write a "
            "requirements file with the packages, and name it in the input `requirements`."
        )
    if repository.python not in (None, IMAGE_PYTHON):
        yield (
            f"The project names Python {repository.python}, and the image has {IMAGE_PYTHON}. "
            "SQLMesh's fingerprints of Python code depend on it: build an image with your Python, "
            "as docs/installation.md says."
        )


def _list_notes_on_state(request: SetupRequest) -> Iterator[str]:
    configuration = request.repository.projects[0].configuration
    gateway = request.gateway or configuration.default_gateway
    engine = configuration.engine_type(gateway)
    if request.level == "review":
        return
    if configuration.is_whole and request.state_type is None:
        yield (
            "No state connection is written in the configuration. An apply needs one that several "
            "runs can share, such as PostgreSQL: docs/state.md."
        )
    elif request.state_type == "duckdb":
        yield (
            "The state is a DuckDB file, which a runner does not keep. An apply needs one that "
            "several runs can share, such as PostgreSQL: docs/state.md."
        )
    if engine not in (None, "spark"):
        yield f"The gateway {gateway} is of type {engine}, and applies and cleanups need Spark."


def _list_notes_on_old_bot(request: SetupRequest) -> Iterator[str]:
    for file in request.repository.old_bot:
        yield (
            f"{file} runs SQLMesh's own bot. Keep it until you trust the reviews, then delete it, "
            "and require the check of the review in place of its own (`SQLMesh - …`). "
            f"{_DOCS} explains each step."
        )
    keys = dict.fromkeys(
        key for each in request.repository.projects for key in each.configuration.bot_keys
    )
    if keys:
        yield (
            f"`cicd_bot:` has {', '.join(keys)}. What has a meaning here is used unchanged; "
            f"`ci-bot doctor` has a line for each key, and {_DOCS} explains them."
        )


def _list_notes_on_reading(request: SetupRequest) -> Iterator[str]:
    for project in request.repository.projects:
        configuration = project.configuration
        if project.is_dbt:
            yield (
                f"{project.path} is a dbt project. It needs `sqlmesh[dbt]` and the target's "
                "adapter in the file that the input `requirements` names. Without a config.py it "
                "can only be compared with prod's state: `--level apply`."
            )
        if not configuration.is_whole:
            yield (
                f"The configuration of {project.path} cannot be read as a whole without running "
                "it. Look whether `env:` and `worker-env` name every variable that it reads."
            )
        if len(configuration.gateways) > 1 and request.gateway is None:
            yield (
                f"{project.path} has the gateways {', '.join(configuration.gateways)}; the "
                f"workflows use {configuration.default_gateway}. Another one is `--gateway NAME`."
            )
