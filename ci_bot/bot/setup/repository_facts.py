"""What is known of a repository that its workflows depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_bot.bot.setup.read_configuration import ProjectConfiguration
from ci_bot.bot.setup.read_versions import FoundVersion

WORKFLOWS = ".github/workflows"


@dataclass(frozen=True)
class FoundProject:
    """A SQLMesh project.

    Attributes:
        path: Its directory, relative to the repository; `.` is the repository itself.
        is_dbt: Whether its models are dbt's.
    """

    path: str
    configuration: ProjectConfiguration
    is_dbt: bool = False


@dataclass(frozen=True)
class RepositoryFacts:
    """What is known of a repository.

    Attributes:
        branch: The default branch.
        versions: Of SQLMesh and PySpark, by their names.
        python: The version of Python that the project names.
        old_bot: Workflows that run SQLMesh's own bot, relative to the repository.
        requirements: The requirements files of pip, the one that counts first.
        imports: Packages that the models import and the image does not have, each with the version
            that a lock file names.
    """

    projects: tuple[FoundProject, ...]
    branch: str = "main"
    versions: Mapping[str, FoundVersion] = field(default_factory=dict)
    python: str | None = None
    old_bot: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    imports: tuple[tuple[str, FoundVersion | None], ...] = ()
