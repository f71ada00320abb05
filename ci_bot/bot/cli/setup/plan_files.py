"""Which files a repository gets for a level, each with its text and its reason. Pure.

The workflows are made from the templates in `templates/workflows`, like the examples in
`.github/examples`. Each names one release of this action: its repository, its commit, and its
version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from ci_bot import __version__
from ci_bot.bot.cli.setup.github_settings import (
    SetupJob,
    SetupLevel,
    list_github_settings,
    list_optional_settings,
    list_worker_env,
)
from ci_bot.bot.cli.setup.read_configuration import SetupConfigVariable
from ci_bot.bot.cli.setup.repository_facts import (
    WORKFLOWS,
    FoundSetupVersion,
    SetupRepositoryFacts,
    is_pip_requirements_file,
)
from ci_bot.protocol.supported_versions import find_source_requirement, is_supported

# A release replaces the zeros by its commit, here as in every document.
_RELEASED = "your-org/sqlmesh-plan-review@0000000000000000000000000000000000000000 # v0.0.0"
_NAMED = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})(?:\s*#\s*(?P<version>v[\w.+-]+))?"
)
_ADDRESS = re.compile(r"^(?:\w+://|git@)[^/:]+[/:](?P<repository>[\w.-]+/[\w.-]+?)(?:\.git)?/?$")
# A review uses the action in the directory `review`.
_USED = re.compile(r"uses: ([\w.-]+/[\w.-]+)/review@([0-9a-f]{40}) # (v[\w.+-]+)")
_TAG = re.compile(r"v\d+\.\d+\.\d+")


@dataclass(frozen=True)
class SetupActionRelease:
    """A release as `uses:` names it: `<repository>@<commit> # <version>`."""

    repository: str
    commit: str
    version: str

    @property
    def is_released(self) -> bool:
        """Whether this commit can exist; the placeholder of an unreleased checkout cannot."""
        return bool(self.commit.strip("0"))


def parse_action_release(text: str) -> SetupActionRelease:
    """Reads `owner/name@commit`, with or without `# v1.2.3`.

    Raises:
        ValueError: the text does not have this form.
    """
    named = _NAMED.fullmatch(text.strip())
    if named is None:
        raise ValueError("owner/name@commit, with the 40 digits of the commit")
    return SetupActionRelease(
        named["repository"], named["commit"], named["version"] or f"v{__version__}"
    )


def find_action_release(direct_url: str | None) -> SetupActionRelease:
    """Finds the release that this installation comes from; without one the placeholder.

    Args:
        direct_url: What pip recorded about an installation from git (PEP 610); None if it came
            from elsewhere.
    """
    return _read_git_release(direct_url) or parse_action_release(_RELEASED)


def read_action_release_of_setup_file(workflow: str) -> SetupActionRelease | None:
    """Reads the release that a review.yml names; None if it names none or the placeholder."""
    used = _USED.search(workflow)
    release = parse_action_release(f"{used[1]}@{used[2]} # {used[3]}") if used else None
    return release if release is not None and release.is_released else None


def _read_git_release(direct_url: str | None) -> SetupActionRelease | None:
    try:
        known = json.loads(direct_url or "{}")
        address, commit = known["url"], known["vcs_info"]["commit_id"]
        revision = known["vcs_info"].get("requested_revision") or ""
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    repository = _ADDRESS.match(str(address))
    if repository is None or not re.fullmatch(r"[0-9a-f]{40}", str(commit)):
        return None
    version = revision if _TAG.fullmatch(str(revision)) else f"v{__version__}"
    return SetupActionRelease(repository["repository"], str(commit), version)


# What the image has; tests/contract/test_setup.py compares it with requirements.lock.
IMAGE_SQLMESH, IMAGE_PYSPARK, IMAGE_PYTHON = "0.236.4", "3.5.9", "3.11"

REVIEW_REQUIREMENTS = ".github/sqlmesh-requirements.txt"
DEPLOY_REQUIREMENTS = ".github/sqlmesh-deploy-requirements.txt"
POLICY = ".sqlmesh-review.yaml"
_DRIVERS = {"postgres": "psycopg2-binary", "gcp_postgres": "psycopg2-binary", "mysql": "pymysql"}
# A line of a template that is no line of the made file.
_STATEMENT = re.compile(r"(?m)^[ \t]*#% (.*)\n")
# No character of a path or a branch may have a meaning for YAML, a shell or GitHub's expressions.
PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./-]*")


@dataclass(frozen=True)
class PlannedSetupFile:
    """A file of the repository.

    Attributes:
        path: Relative to the repository.
        why: Its purpose, as a sentence.
        is_kept: Whether an existing file stays as it is, because people edit it.
    """

    path: str
    text: str
    why: str
    is_kept: bool = False


@dataclass(frozen=True)
class SetupRequest:
    """What has to be set up.

    Attributes:
        gateway: The gateway that somebody asked for; None for the project's default.
        deploy_requirements: The file that deploy.yml installs; None for a file that we write.
    """

    repository: SetupRepositoryFacts
    level: SetupLevel
    release: SetupActionRelease
    gateway: str | None = None
    deploy_requirements: str | None = None

    @property
    def used_variables(self) -> list[SetupConfigVariable]:
        """The variables of all projects, each once."""
        found: dict[str, SetupConfigVariable] = {}
        for project in self.repository.projects:
            configuration = project.configuration
            chosen = self.gateway or configuration.default_gateway
            for variable in configuration.list_variables_of(chosen):
                found.setdefault(variable.name, variable)
        return [found[name] for name in sorted(found)]

    @property
    def state_type(self) -> str | None:
        """The type of the state database, according to the first project."""
        configuration = self.repository.projects[0].configuration
        return configuration.find_state_type(self.gateway or configuration.default_gateway)


@dataclass(frozen=True)
class _SetupWorkflowTemplate:
    name: str
    job: SetupJob | None
    why: str
    levels: tuple[SetupLevel, ...]


_WORKFLOWS = (
    _SetupWorkflowTemplate(
        "review.yml",
        "review",
        "Reviews each pull request and writes its comment. It alone runs on the pull request's "
        "own ref, so it has credentials of its own, or none.",
        ("review", "apply", "full"),
    ),
    _SetupWorkflowTemplate(
        "apply.yml",
        "apply",
        "Builds the reviewed plan on request. It alone takes the pull request's code beside "
        "accounts that write, and is started by a person or a comment only.",
        ("apply", "full"),
    ),
    _SetupWorkflowTemplate(
        "cleanup.yml",
        "cleanup",
        "Removes the environment of a closed pull request, and at level full sweeps every night. "
        "It runs the default branch's code only.",
        ("apply", "full"),
    ),
    _SetupWorkflowTemplate(
        "comments.yml",
        None,
        "Answers `/sqlmesh` comments, and posts the comments of forks. It has no secret and checks "
        "out nothing.",
        ("full",),
    ),
    _SetupWorkflowTemplate(
        "deploy.yml",
        "deploy",
        "Deploys prod after a merge, if its plan is the reviewed one. It alone has prod's "
        "accounts.",
        ("full",),
    ),
)


def plan_setup_files(
    request: SetupRequest, load: Callable[[str], str | None]
) -> list[PlannedSetupFile]:
    """Lists the files of a level, the most important first.

    Args:
        load: Returns the text of a template by its name.
    """
    files = [*list_setup_workflows(request, load)]
    requirements = _choose_review_requirements(request)
    if requirements is not None and requirements.text is not None:
        files.append(
            PlannedSetupFile(
                requirements.path,
                requirements.text,
                "The project's own versions, where the image has others.",
            )
        )
    if request.level == "full" and request.deploy_requirements is None:
        files.append(
            PlannedSetupFile(
                DEPLOY_REQUIREMENTS,
                _render_deploy_requirements(request),
                "What deploy.yml installs. Add the packages that your models import.",
            )
        )
    for project in request.repository.projects:
        path = POLICY if project.path == "." else f"{project.path}/{POLICY}"
        files.append(
            PlannedSetupFile(
                path,
                load("sqlmesh-review.yaml") or "",
                "The team's own policy; it is yours to edit.",
                is_kept=True,
            )
        )
    return files


def list_setup_workflows(
    request: SetupRequest, load: Callable[[str], str | None]
) -> Iterable[PlannedSetupFile]:
    """Yields the workflows of a level."""
    environment = SandboxedEnvironment(
        loader=FunctionLoader(lambda name: _make_setup_template_tags(load(name))),
        undefined=StrictUndefined,
        # The output is YAML, and its values are let through by `PLAIN` or made by this program.
        autoescape=False,
        auto_reload=False,
        keep_trailing_newline=True,
        variable_start_string="<%",
        variable_end_string="%>",
        block_start_string="<%%",
        block_end_string="%%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    for workflow in _WORKFLOWS:
        if request.level in workflow.levels:
            text = environment.get_template(workflow.name).render(
                _list_workflow_template_values(request, workflow.job)
            )
            yield PlannedSetupFile(f"{WORKFLOWS}/{workflow.name}", text, workflow.why)


def _make_setup_template_tags(template: str | None) -> str | None:
    """Turns the lines `#% if x` of a template into tags of Jinja, each with its newline.

    Jinja's own line statements would also remove the empty lines after them.
    """
    return None if template is None else _STATEMENT.sub(r"<%% \1 %%>", template)


def list_names_of_setup_workflows(level: SetupLevel = "full") -> list[str]:
    """Lists the names of a level's workflows; the highest level has all of them."""
    return [workflow.name for workflow in _WORKFLOWS if level in workflow.levels]


def _make_job_context(request: SetupRequest, job: SetupJob | None) -> dict[str, object]:
    """Makes the variables of a job, with the names that the parts of templates use."""
    variables = request.used_variables
    settings = list_github_settings(variables, request.level, job) if job else []
    return {
        "env": [(each.name, each.value) for each in settings],
        "optional": list_optional_settings(variables, job)
        if job and request.level != "review"
        else [],
        "worker_env": list_worker_env(settings, variables),
    }


def _list_workflow_template_values(
    request: SetupRequest, job: SetupJob | None
) -> dict[str, object]:
    """Makes the values that a template is filled with."""
    own = _make_job_context(request, job)
    projects = [project.path for project in request.repository.projects]
    requirements = _choose_review_requirements(request)
    gateway = f" --gateway {request.gateway}" if request.gateway else ""
    options = " ".join(f"--project {project}" for project in projects)
    sqlmesh = "" if projects == ["."] else "".join(f" --paths {each}" for each in projects)
    return {
        "level": request.level,
        "action": request.release.repository,
        "commit": request.release.commit,
        "version": request.release.version,
        "is_released": request.release.is_released,
        "projects": projects,
        "gateway": request.gateway,
        "branch": request.repository.branch,
        **own,
        # For the job in another workflow that has the account of reviews.
        "review": _make_job_context(request, "review"),
        "requirements": requirements.path if requirements else None,
        "deploy_requirements": request.deploy_requirements or DEPLOY_REQUIREMENTS,
        "python": request.repository.python or IMAGE_PYTHON,
        "project_options": f"{options}{gateway}",
        "sqlmesh_options": f"{sqlmesh}{gateway}",
    }


@dataclass(frozen=True)
class _SetupRequirementsFile:
    """A requirements file: an existing one, or a new one with this text."""

    path: str
    text: str | None = None


def _choose_review_requirements(request: SetupRequest) -> _SetupRequirementsFile | None:
    """Chooses the file for the input `requirements`; None if the image has all that is needed."""
    repository = request.repository
    sqlmesh = repository.versions.get("sqlmesh")
    if sqlmesh is not None and sqlmesh.version and not is_supported(sqlmesh.version):
        return None
    other = {
        name: found
        for name, of_image in (("sqlmesh", IMAGE_SQLMESH), ("pyspark", IMAGE_PYSPARK))
        if (found := repository.versions.get(name)) is not None
        and found.version not in (None, of_image)
        and _can_import_be_installed(name, found)
    }
    files = {found.file for found in other.values()}
    if not other and repository.imports:
        files = {*repository.requirements[:1]}
    if len(files) == 1 and all(map(is_pip_requirements_file, files)):
        return _SetupRequirementsFile(files.pop())
    pinned = {**other, **{name: found for name, found in repository.imports if found is not None}}
    lines = "".join(
        f"{name}=={found.version} # as {found.file} says\n" for name, found in pinned.items()
    )
    if not lines:
        return None
    return _SetupRequirementsFile(
        REVIEW_REQUIREMENTS,
        "# What this action installs beside its own packages, so that it plans as prod\n"
        "# is planned. Run `ci-bot init` again when the lock file changes.\n" + lines,
    )


def list_unknown_imports(request: SetupRequest) -> list[str]:
    """Lists packages that the models import and that no file of the repository names."""
    found = _choose_review_requirements(request)
    if found is not None and found.text is None:
        return []
    return [name for name, locked in request.repository.imports if locked is None]


def _can_import_be_installed(name: str, found: FoundSetupVersion) -> bool:
    version = found.version or ""
    return (
        is_supported(version) if name == "sqlmesh" else find_source_requirement(version) is not None
    )


def _render_deploy_requirements(request: SetupRequest) -> str:
    """Renders the list of packages that a runner needs to plan and build prod."""
    versions = request.repository.versions
    named = [found for found in versions.values() if found.is_in_requirements]
    lines = ["# What deploy.yml installs: the project's own versions, and this action's release."]
    if named and len({found.file for found in named}) == 1:
        lines.append(f"--requirement ../{named[0].file}")
    for name, of_image in (("sqlmesh", IMAGE_SQLMESH), ("pyspark", IMAGE_PYSPARK)):
        found = versions.get(name)
        if found is None or not found.is_in_requirements:
            lines.append(f"{name}=={(found.version if found else None) or of_image}")
    driver = _DRIVERS.get(request.state_type or "")
    if driver:
        lines.append(driver)
    release = request.release
    lines.append(
        f"sqlmesh-plan-review @ git+https://github.com/{release.repository}@{release.commit}"
        f" # {release.version}"
    )
    return "\n".join([*lines, ""])
