"""The workflows of .github/examples, as `ci-bot init --level full` writes them for the example company.

    python -m tests.example_workflows            writes them anew

They stand for any team's, so they have two things of their own: a token of the warehouse, which the
company's cluster does not ask for, and the requirements file of a team that has one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ci_bot.bot.cli.setup.plan_files import SetupRequest, find_action_release, list_setup_workflows
from ci_bot.bot.cli.setup.read_configuration import SetupConfigVariable
from ci_bot.bot.cli.setup.read_repository import read_repository_for_setup
from ci_bot.bot.cli.setup.repository_facts import SetupRepositoryFacts
from ci_bot.bot.cli.setup.setup_command import load_setup_template

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / ".github" / "examples"
COMPANY = ROOT / "examples" / "company"
TOKEN = SetupConfigVariable("WAREHOUSE_TOKEN", "warehouse", "token")


def example_workflows() -> dict[str, str]:
    """Every example by its name."""
    request = SetupRequest(
        repository=_repository(),
        level="full",
        release=find_action_release(None),
        deploy_requirements="requirements.txt",
    )
    return {
        Path(file.path).name: file.text
        for file in list_setup_workflows(request, load_setup_template)
    }


def _repository() -> SetupRepositoryFacts:
    (project,) = read_repository_for_setup(COMPANY, (".",)).projects
    configuration = project.configuration
    variables = (*configuration.variables, TOKEN)
    with_token = replace(project, configuration=replace(configuration, variables=variables))
    return SetupRepositoryFacts(projects=(with_token,))


def main() -> None:
    written = example_workflows()
    for path in EXAMPLES.glob("*.yml"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (EXAMPLES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
