"""What a pull request's environment is called, read from a real checkout of the base branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.session import (
    read_environment_prefix_for_worker,
    read_laptop_prefix_for_worker,
)
from ci_bot.errors import BadInput
from ci_bot.protocol.cleanup_report import CleanupDocument, EnvironmentList
from ci_bot.protocol.messages import ListRequest, Owner
from ci_bot.static_config import WrittenPrefix
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup import sweep
from ci_bot.worker.state_store.ledger import Ledger, LedgerPhase, LedgerRow
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened
from tests.projects.repository import Repository, write_repository
from tests.worker import Client

BOT = "\ncicd_bot: {{type: github, pr_environment_name: {}}}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return write_repository(tmp_path / "repository")


def configured(repository: Repository, name: str, file: str = "project/config.yaml") -> str:
    """A commit whose configuration names environments."""
    kept = repository.read("project/config.yaml").partition("\ncicd_bot:")[0]
    return repository.commit({file: kept + BOT.format(name)})


def ask(repository: Repository, base: str | None, project: str = "project") -> WrittenPrefix:
    found: WrittenPrefix = Client(repository.root, [project])._with(
        lambda bench: read_environment_prefix_for_worker(bench, base)
    )
    return found


def test_prefix__is_the_base_commits_and_not_what_is_checked_out(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    base = configured(repository, "team")
    configured(repository, "mine")

    assert ask(repository, base) == WrittenPrefix("team")
    assert ask(repository, first) == WrittenPrefix()


@pytest.mark.parametrize("name", ["config.yml", "sqlmesh.yaml", "sqlmesh.yml"])
def test_prefix__in_each_file_that_sqlmesh_reads(repository: Repository, name: str) -> None:
    kept = repository.read("project/config.yaml")
    base = repository.commit(
        {"project/config.yaml": None, f"project/{name}": kept + BOT.format("team")}
    )

    assert ask(repository, base) == WrittenPrefix("team")


def test_prefix__behind_a_link_or_in_python_is_none(repository: Repository) -> None:
    kept = repository.read("project/config.yaml")
    (repository.root / "project" / "config.yaml").unlink()
    (repository.root / "project" / "config.yml").symlink_to("../elsewhere.yaml")
    base = repository.commit({"elsewhere.yaml": kept + BOT.format("team")})

    assert ask(repository, base) == WrittenPrefix()


def test_prefix__without_the_base_commit_is_the_default_only_if_nothing_is_written(
    repository: Repository,
) -> None:
    gone = "a" * 40
    assert ask(repository, gone) == ask(repository, None) == WrittenPrefix()
    configured(repository, "team")

    with pytest.raises(BadInput, match=r"pr_environment_name.*not in the checkout") as refused:
        ask(repository, gone)

    assert "fetch-depth: 2" in (refused.value.hint or "")
    assert "environment-prefix" in (refused.value.hint or "")


def test_prefix__on_a_laptop_is_that_of_the_checkout(repository: Repository) -> None:
    configured(repository, "team")

    def here(bench: WorkerClient) -> Any:
        return read_laptop_prefix_for_worker(bench)

    assert Client(repository.root, ["project"])._with(here) == WrittenPrefix("team")


def test_cleanup__on_a_laptop_takes_the_projects_prefix_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ci_bot.bot.cli.session import read_prefix_on_laptop
    from ci_bot.host import make_process_machine

    shop = write_duck_shop(tmp_path)
    config = shop.project / "config.yaml"
    config.write_text(config.read_text() + BOT.format("team"))
    machine = make_process_machine()

    def both(bench: WorkerClient) -> tuple[str, str]:
        return read_prefix_on_laptop(bench, machine, None), read_prefix_on_laptop(
            bench, machine, "ci"
        )

    assert Client(shop.project)._with(both) == ("team", "ci")
    config.write_text(config.read_text().replace("team", "\"{{ env_var('T', 'team') }}\""))
    assert Client(shop.project)._with(both) == ("pr", "ci")
    assert "is made by a template" in capsys.readouterr().err


# --------------------------------------------------------------------------- another prefix before


def row(environment: str, number: int | None, owner: str, phase: LedgerPhase) -> LedgerRow:
    return LedgerRow(
        environment=environment,
        owner=owner,
        pr_number=number,
        head_sha=None,
        plan_id=None,
        phase=phase,
        gateway="duck",
        catalog="one",
        suffix_target="schema",
        created_at="2024-01-01T00:00:00Z",
        updated_at="2024-01-01T00:00:00Z",
    )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    run_prod(found, "2024-01-04")
    return found


def listed(shop: Shop, scratch: Path, prefix: str) -> EnvironmentList:
    scratch.mkdir()

    def ask_list(bench: WorkerClient) -> ListRequest:
        return bench.make_request(
            ListRequest, owner=Owner(name="octo/shop"), environment_prefix=prefix
        )

    request: ListRequest = Client(shop.project)._with(ask_list)
    workplace = request.workplace.model_copy(
        update={"cache_dir": str(scratch / "cache"), "scratch_dir": str(scratch)}
    )
    return sweep.list_environments_to_sweep(
        request.model_copy(update={"workplace": workplace}),
        sweep.SweepPorts(
            progress=lambda *_: None,
            on_spark_start=lambda: None,
            stop=lambda: False,
            keep=lambda _: None,
        ),
    )


def test_list__holds_what_this_repository_made_under_another_prefix(
    shop: Shop, tmp_path: Path
) -> None:
    with opened(tmp_path / "open", shop.project, write=True) as found:
        ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(found.context))
        ledger.prepare_tables()
        for item in (
            row("team_1", 1, "octo/shop", "applied"),
            row("pr_2", 2, "octo/shop", "applied"),
            row("pr_3", 3, "octo/shop", "reclaimable"),  # its tables still wait
            row("pr_4", 4, "octo/shop", "removed"),
            row("pr_5", 5, "octo/other", "applied"),
            row("dev", None, "octo/shop", "applied"),
            row("pr_7", 8, "octo/shop", "applied"),
        ):
            ledger.write_row(item)

    names = {item.environment for item in listed(shop, tmp_path / "list", "team").environments}

    assert names == {"team_1", "pr_2", "pr_3"}


def test_documents__of_two_names_tell_what_became_of_something() -> None:
    from ci_bot.bot.handlers.cleanup import _select_documents
    from tests.factories import make_cleanup

    def document(environment: str, **facts: Any) -> CleanupDocument:
        return make_cleanup(environment=environment, **facts)

    nothing = {"result": "nothing_to_do", "existed": False}
    removed = document("pr_7", result="removed")
    own = document("team_7", result="removed")

    assert _select_documents([removed, document("team_7", **nothing)]) == [removed]
    assert _select_documents([document("pr_7", **nothing), own]) == [own]
    assert _select_documents([document("pr_7", result="refused"), own]) == [own]
    assert _select_documents([removed, own]) == [removed, own]
    assert _select_documents([own]) == [own]
