"""`ci-bot init` as a whole: what it writes, what a second run does, and what it refuses."""

from __future__ import annotations

import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from ci_bot import __version__
from ci_bot.bot.actions.inputs import ActionInputs
from ci_bot.bot.cli.commands import command_group
from ci_bot.bot.cli.options import choose_projects
from ci_bot.bot.cli.setup.plan_files import find_action_release, parse_action_release
from ci_bot.bot.cli.setup.setup_command import SetupOptions, set_up_repository
from ci_bot.bot.sandbox.launch import parse_sandbox_variables
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.host import make_process_machine
from tests.setup_layouts import LAYOUTS, NEXT_RELEASE, RELEASE, SPARK_ON_POSTGRES, clone

PLACEHOLDER = f"team/plan-review@{'0' * 40} # v0.0.0"

PROJECTS = {"several": ("sales", "finance")}
LEVELS = {
    "review": ["review"],
    "apply": ["apply", "cleanup", "review"],
    "full": ["apply", "cleanup", "comments", "deploy", "review"],
}


def workflows(files: dict[str, str]) -> list[str]:
    """The names of the workflows that `ci-bot init` has made."""
    made = [path for path, text in files.items() if "Made by `ci-bot init" in text]
    return [Path(path).stem for path in made if path.startswith(".github/workflows/")]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("level", LEVELS)
def test_init__a_second_run_changes_nothing(layout: str, level: str, tmp_path: Path) -> None:
    repository = clone(tmp_path, layout)
    before = repository.files()
    repository.init(level=level, projects=PROJECTS.get(layout, ()))
    first = repository.files()
    assert workflows(first) == LEVELS[level]
    assert {path: first[path] for path in before} == before

    told = repository.init(projects=PROJECTS.get(layout, ()))

    assert repository.files() == first
    assert f"Level {level}" in told
    assert "Nothing is to be written" in told


@pytest.mark.parametrize("layout", LAYOUTS)
def test_init__review_names_no_secret_and_no_environment(layout: str, tmp_path: Path) -> None:
    repository = clone(tmp_path, layout)
    told = repository.init(projects=PROJECTS.get(layout, ()))
    text = repository.workflow("review")
    assert "secrets." not in text
    assert "environment:" not in text.replace("Models to rebuild in the environment", "")
    assert "gh secret" not in told
    assert RELEASE.partition("@")[2] in text, "nothing is left to edit by hand"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("level", LEVELS)
def test_init__its_inputs_are_those_of_the_action(layout: str, level: str, tmp_path: Path) -> None:
    repository = clone(tmp_path, layout)
    repository.init(level=level, projects=PROJECTS.get(layout, ()))
    for name in LEVELS[level]:
        for job in YAML(typ="safe").load(repository.workflow(name))["jobs"].values():
            for step in job["steps"]:
                if "sqlmesh-plan-review" not in step.get("uses", ""):
                    continue
                given = step["with"]
                assert set(given) <= set(ActionInputs.list_names())
                passed = parse_sandbox_variables(given.get("worker-env", ""))
                for variable in step.get("env", {}):
                    assert passed.pass_on(variable), f"{variable} does not reach the project"
                if "requirements" in given:
                    assert (tmp_path / given["requirements"]).is_file()
                for project in given["project"].split():
                    assert (tmp_path / project).is_dir()


def test_init__each_secret_and_variable_of_the_workflows_has_its_command(tmp_path: Path) -> None:
    repository = clone(tmp_path, "company")
    told = repository.init(level="full")
    named = set()
    for name in LEVELS["full"]:
        job = next(iter(YAML(typ="safe").load(repository.workflow(name))["jobs"].values()))
        environment = job.get("environment") or {}
        environment = environment if isinstance(environment, str) else environment.get("name")
        for kind, each in re.findall(r"\$\{\{ (secrets|vars)\.(\w+) \}\}", str(job)):
            named.add((kind, each))
            if kind == "secrets":
                assert f"gh secret set {each} --env {environment}\n" in told
            else:
                assert re.search(rf"^gh variable set {each}( --env {environment})?$", told, re.M)
    assert len(named) == 10
    for environment in ("review", "apply", "cleanup", "prod"):
        assert f"/environments/sqlmesh-{environment}" in told
    assert "CREATE ROLE sqlmesh_review" in told


def test_init__a_branch_limits_all_environments_but_the_reviews(tmp_path: Path) -> None:
    repository = clone(tmp_path, "company")
    told = repository.init(level="full")
    limited = re.findall(r"sqlmesh-(\w+)/deployment-branch-policies -f name=trunk", told)
    assert limited == ["apply", "cleanup", "prod"]
    assert "branches: [trunk]" in repository.workflow("deploy")


def test_init__several_projects_have_to_be_named(tmp_path: Path) -> None:
    repository = clone(tmp_path, "several")
    with pytest.raises(BadInput, match="There are 2 SQLMesh projects") as caught:
        repository.init()
    assert caught.value.hint is not None
    assert "`--project finance` or `--project sales`" in caught.value.hint
    assert workflows(repository.files()) == []

    repository.init(projects=("sales",))
    assert "project: sales #" in repository.workflow("review")


def test_init__of_many_projects_some_are_named(tmp_path: Path) -> None:
    repository = clone(tmp_path, {f"p{number:02}/sqlmesh.yaml": "" for number in range(9)})
    with pytest.raises(BadInput) as caught:
        repository.init()
    assert "`--project p05` or another one of 9." in (caught.value.hint or "")


def test_init__several_projects_are_chosen_by_a_person(tmp_path: Path) -> None:
    clone(tmp_path, "several")
    asked = []

    def choose(found: list[str]) -> list[str]:
        asked.append(found)
        return found[:1]

    machine = replace(make_process_machine(), directory=tmp_path, out=io.StringIO())
    set_up_repository(machine, SetupOptions(action=RELEASE), choose)
    assert asked == [["finance", "sales"]]
    assert "project: finance #" in (tmp_path / ".github/workflows/review.yml").read_text()


def test_init__in_a_projects_directory_takes_that_one(tmp_path: Path) -> None:
    repository = clone(tmp_path, "several")
    repository.init(directory="sales")
    assert "project: sales #" in repository.workflow("review")


def test_init__several_on_one_state_are_lines_of_one_input(tmp_path: Path) -> None:
    repository = clone(tmp_path, "several")
    repository.init(level="full", projects=("sales", "finance"))
    for name in LEVELS["full"][:-2]:
        assert "            sales\n            finance\n" in repository.workflow(name)
    assert "--project sales --project finance --expect" in repository.workflow("deploy")
    assert "sqlmesh --paths sales --paths finance plan prod" in repository.workflow("deploy")


@pytest.mark.parametrize(
    ("layout", "requirements", "lines"),
    [
        ("company", None, None),
        ("poetry", ".github/sqlmesh-requirements.txt", ["sqlmesh==0.230.1 # as poetry.lock says"]),
        ("pdm", ".github/sqlmesh-requirements.txt", ["sqlmesh==0.227.1 # as pdm.lock says"]),
        ("uv", ".github/sqlmesh-requirements.txt", ["pyspark==4.0.1 # as uv.lock says"]),
        ("pip", "requirements.txt", None),
    ],
)
def test_init__other_versions_than_the_images_are_installed(
    layout: str, requirements: str | None, lines: list[str] | None, tmp_path: Path
) -> None:
    repository = clone(tmp_path, layout)
    repository.init(level="apply")
    for name in LEVELS["apply"]:
        text = repository.workflow(name)
        if requirements is None:
            assert "requirements:" not in text
        else:
            assert f"          requirements: {requirements}\n" in text
    if lines is not None:
        text = repository.files()[str(requirements)]
        assert [line for line in text.splitlines() if not line.startswith("#")] == lines


def test_init__a_version_that_cannot_be_served_is_told(tmp_path: Path) -> None:
    repository = clone(
        tmp_path, {"config.yaml": SPARK_ON_POSTGRES, "requirements.txt": "sqlmesh==0.100.0"}
    )
    told = " ".join(repository.init().split())
    assert "requirements.txt has SQLMesh 0.100.0, and this release works with SQLMesh" in told
    assert "requirements:" not in repository.workflow("review")


def test_init__python_and_the_old_bot_are_told(tmp_path: Path) -> None:
    told = " ".join(clone(tmp_path / "a", "uv").init().split())
    assert "The project names Python 3.12, and the image has 3.11." in told
    told = " ".join(clone(tmp_path / "b", "old bot").init().split())
    assert ".github/workflows/sqlmesh.yml runs SQLMesh's own bot." in told
    assert "cicd_bot: has type, merge_method." in told


@pytest.mark.parametrize(
    ("layout", "note"),
    [
        ("duckdb", "The state is a DuckDB file"),
        ("duckdb", "The gateway duckdb is of type duckdb, and applies and cleanups need Spark."),
        ("python", ". has the gateways prod, local; the workflows use prod."),
    ],
)
def test_init__what_stands_in_the_way_of_an_apply_is_told(
    layout: str, note: str, tmp_path: Path
) -> None:
    told = " ".join(clone(tmp_path, layout).init(level="apply").split())
    assert note in told


def test_again__a_changed_configuration_is_followed_in_files_that_nobody_edited(
    tmp_path: Path,
) -> None:
    repository = clone(tmp_path, "pip")
    repository.init(level="apply")
    config = tmp_path / "config.yaml"
    config.write_text(
        SPARK_ON_POSTGRES.replace("database: sqlmesh", "database: {{ env_var('PG_DB') }}")
    )
    told = repository.init()
    assert "PG_DB: ${{ vars.PG_DB }}" in repository.workflow("review")
    assert "gh variable set PG_DB\n" in told


def test_again__another_level_writes_the_review_anew(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init()
    assert "baseline: base-branch" in repository.workflow("review")
    repository.init(level="apply")
    assert "baseline:" not in repository.workflow("review")
    told = " ".join(repository.init(level="review").split())
    assert "baseline: base-branch" in repository.workflow("review")
    assert ".github/workflows/apply.yml is of a higher level than review" in told


def test_again__an_edited_file_stays_and_its_difference_is_shown(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init()
    path = tmp_path / ".github/workflows/review.yml"
    path.write_text(path.read_text().replace("runs-on: ubuntu-24.04", "runs-on: [ours]"))
    edited = path.read_text()

    told = repository.init(level="apply")

    assert path.read_text() == edited
    assert "-    runs-on: [ours]\n" in told
    assert "+    runs-on: ubuntu-24.04\n" in told
    assert workflows(repository.files()) == LEVELS["apply"]


def test_again__an_edited_review_does_not_lower_the_level(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init()
    path = tmp_path / ".github/workflows/review.yml"
    path.write_text(path.read_text().replace("runs-on: ubuntu-24.04", "runs-on: [ours]"))
    repository.init(level="full")
    told = repository.init()
    assert "Level full" in told
    assert "is of a higher level" not in told
    assert "Nothing is to be written: what you edited stays." in told


def test_again__what_is_lowered_stays_lower(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init(level="full")
    assert "1 file written" in repository.init(level="review")
    assert "Level review for this repository" in repository.init()


def test_again__the_policy_is_the_teams_from_the_first_run_on(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    (tmp_path / ".sqlmesh-review.yaml").write_text("version: 1\nlimits: {max-intervals: 7}\n")
    told = repository.init()
    assert "max-intervals: 7" in (tmp_path / ".sqlmesh-review.yaml").read_text()
    assert "yours" in told


def test_upgrade__pins_move_only_when_asked_for(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init(level="full")
    first = repository.files()
    assert "Nothing is to be written" in repository.init(action=NEXT_RELEASE)
    assert repository.files() == first

    repository.init(action=NEXT_RELEASE, upgrade=True)

    for path, text in repository.files().items():
        assert "ab" * 20 not in text, path
    assert f"git+https://github.com/{NEXT_RELEASE}" in first_with(repository.files(), "deploy-req")
    assert "Nothing is to be written" in repository.init(action=NEXT_RELEASE, upgrade=True)


def first_with(files: dict[str, str], part: str) -> str:
    return next(text for path, text in files.items() if part in path)


def test_upgrade__in_an_edited_file_only_pins_move(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init()
    path = tmp_path / ".github/workflows/review.yml"
    old = path.read_text().replace("runs-on: ubuntu-24.04", "runs-on: [ours]")
    path.write_text(
        old.replace("@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", f"@{'0a' * 20} # v6.0.0")
    )

    told = repository.init(action=NEXT_RELEASE, upgrade=True)

    assert path.read_text() == old.replace(
        RELEASE.partition("@")[2], NEXT_RELEASE.partition("@")[2]
    )
    assert "pins moved" in told


def test_foreign__a_file_of_somebody_else_refuses_the_run(tmp_path: Path) -> None:
    repository = clone(tmp_path, LAYOUTS["pip"]() | {".github/workflows/apply.yml": "on: push\n"})
    repository.init(level="review")
    before = repository.files()
    with pytest.raises(RequestRefused, match=r"\.github/workflows/apply\.yml is there already"):
        repository.init(level="apply")
    assert repository.files() == before


def test_foreign__a_copy_of_the_same_text_is_taken_over(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init()
    path = tmp_path / ".github/workflows/review.yml"
    signed = path.read_text()
    path.write_text("".join(signed.splitlines(keepends=True)[:-1]))
    repository.init()
    assert path.read_text() == signed


def test_dry_run__writes_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    before = repository.files()
    told = repository.init(level="full", dry_run=True)
    assert repository.files() == before
    assert "7 files would be written" in told
    assert "gh " not in told


def test_output__writes_elsewhere(tmp_path: Path) -> None:
    repository = clone(tmp_path / "here", "pip")
    before = repository.files()
    told = repository.init(output="../there")
    assert "git add" not in told
    assert repository.files() == before
    assert (tmp_path / "there/.github/workflows/review.yml").is_file()


def test_stop__no_repository(tmp_path: Path) -> None:
    machine = replace(make_process_machine(), directory=tmp_path, out=io.StringIO())
    with pytest.raises(BadInput, match="is in no git repository"):
        set_up_repository(machine, SetupOptions())


@pytest.mark.parametrize(
    ("files", "projects", "sentence", "hint"),
    [
        ({"README.md": "x"}, (), "There is no SQLMesh project in", "--project PATH"),
        ({"config.yaml": "site: ours\n"}, (), "There is no SQLMesh project in", "--project"),
        ({"data/sqlmesh.yaml": ""}, (".",), r"\. has no configuration", "Below it there is data."),
        ({"config.yaml": SPARK_ON_POSTGRES}, ("nope",), "`nope` does not exist", "--project"),
        ({"config.yaml": SPARK_ON_POSTGRES}, ("../x",), "is outside of the repository", ""),
        ({"a ${{ b }}/sqlmesh.yaml": ""}, (), "cannot be written into a workflow", "Rename"),
    ],
)
def test_stop__no_project(
    files: dict[str, str], projects: tuple[str, ...], sentence: str, hint: str, tmp_path: Path
) -> None:
    repository = clone(tmp_path / "r", files)
    with pytest.raises(BadInput, match=sentence) as caught:
        repository.init(projects=projects)
    assert hint in (caught.value.hint or "")
    assert workflows(repository.files()) == []


def test_stop__an_unknown_gateway(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no gateway nope") as caught:
        clone(tmp_path, "pip").init(gateway="nope")
    assert caught.value.hint == "It has spark."


def test_stop__nothing_can_be_written_and_nothing_is_left(tmp_path: Path) -> None:
    """As in a read-only tree, also for an account that may write everywhere."""
    repository = clone(tmp_path, LAYOUTS["pip"]() | {".github": "a file"})
    before = repository.files()
    with pytest.raises(BotError, match=r"No file can be written|cannot be read") as caught:
        repository.init()
    assert caught.value.exit_code == 2
    assert repository.files() == before


def test_command__hands_its_options_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = clone(tmp_path, "several")
    monkeypatch.chdir(tmp_path)
    line = ["init", "sales", "--project", "finance", "--level", "apply", "--action", RELEASE]
    done = CliRunner().invoke(command_group, line)
    assert done.exit_code == 0, done.output
    assert "            sales\n            finance\n" in repository.workflow("apply")


def test_command__asks_which_project_is_meant() -> None:
    with CliRunner().isolation(input="7\n2\n") as streams:
        chosen = choose_projects(["finance", "sales"])
        asked = streams[1].getvalue().decode() if streams[1] else ""
    assert chosen == ("sales",)
    assert "2  sales" in asked


@pytest.mark.parametrize("value", ["acme/x@v1", "acme@" + "a" * 40, "acme/x@" + "a" * 39])
def test_command__a_tag_is_no_release(value: str) -> None:
    done = CliRunner().invoke(command_group, ["init", "--action", value], standalone_mode=False)
    assert "must be OWNER/NAME@COMMIT" in str(done.exception)


GIT = "git+https://github.com/acme/sqlmesh-plan-review"


@pytest.mark.parametrize(
    ("url", "revision", "release"),
    [
        ("https://github.com/acme/bot.git", "v1.2.3", f"acme/bot@{'1' * 40} # v1.2.3"),
        ("https://github.com/acme/bot", None, f"acme/bot@{'1' * 40} # v{__version__}"),
        ("ssh://git@github.com/acme/bot.git", "main", f"acme/bot@{'1' * 40} # v{__version__}"),
    ],
)
def test_release__is_that_of_the_installation(url: str, revision: str | None, release: str) -> None:
    vcs = f'{{"vcs": "git", "commit_id": "{"1" * 40}"'
    vcs += f', "requested_revision": "{revision}"}}' if revision else "}"
    found = find_action_release(f'{{"url": "{url}", "vcs_info": {vcs}}}')
    assert found == parse_action_release(release)
    assert found.is_released


@pytest.mark.parametrize(
    "direct_url", [None, "", "{", "[]", '{"url": "file:///x", "dir_info": {"editable": true}}']
)
def test_release__from_elsewhere_is_the_placeholder_and_is_told(
    direct_url: str | None, tmp_path: Path
) -> None:
    assert find_action_release(direct_url) == find_action_release(None), "what is declared"
    told = clone(tmp_path, "pip").init(action=PLACEHOLDER)
    assert "This ci-bot was not installed from a release" in told


def test_again__without_the_options_of_before_changes_nothing(tmp_path: Path) -> None:
    """Neither the release nor the gateway has to be said again."""
    repository = clone(tmp_path, "python")
    repository.init(level="full", gateway="local")
    first = repository.files()
    assert "gateway: local" in repository.workflow("review")

    told = repository.init(action=None)

    assert "Nothing is to be written" in told
    assert repository.files() == first
    assert "Another one is --gateway NAME" not in told


def test_again__a_release_takes_the_place_of_the_placeholder(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    repository.init(action=PLACEHOLDER)
    assert f"@{'0' * 40} # v0.0.0" in repository.workflow("review")
    repository.init(action=RELEASE)
    assert RELEASE.partition("@")[2] in repository.workflow("review")
    assert "Replace by the release" not in repository.workflow("review")


def test_again__another_project_does_not_take_the_place_of_the_first(tmp_path: Path) -> None:
    repository = clone(tmp_path, "several")
    repository.init(projects=("sales",))
    before = repository.files()
    with pytest.raises(RequestRefused, match="The workflows here are of sales") as caught:
        repository.init(projects=("finance",))
    assert "`ci-bot init --project sales --project finance`" in (caught.value.hint or "")
    assert repository.files() == before

    repository.init(projects=("sales", "finance"))
    assert "            sales\n            finance\n" in repository.workflow("review")


def test_stop__where_nothing_can_be_made_nothing_is_left(tmp_path: Path) -> None:
    repository = clone(tmp_path, "pip")
    (tmp_path / ".github").symlink_to(tmp_path / "gone")
    before = repository.files()
    with pytest.raises(BadInput, match=r"No file can be written to .* Nothing was written"):
        repository.init()
    assert repository.files() == before


def test_work_tree__knows_the_branch_of_its_repository(tmp_path: Path) -> None:
    main = clone(tmp_path / "main", "pip")
    linked = main.root / ".git" / "worktrees" / "tree"
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n")
    tree = clone(tmp_path / "tree", "pip")
    shutil.rmtree(tree.root / ".git")
    (tree.root / ".git").write_text(f"gitdir: {linked}\n")
    tree.init(level="full")
    assert "branches: [trunk]" in tree.workflow("deploy")


@pytest.mark.parametrize(("head", "branch"), [("master", "master"), ("work", "main")])
def test_clone__without_an_origin_deploys_from_the_usual_branch(
    head: str, branch: str, tmp_path: Path
) -> None:
    repository = clone(tmp_path, "pip")
    (tmp_path / ".git/refs/remotes/origin/HEAD").unlink()
    (tmp_path / ".git/HEAD").write_text(f"ref: refs/heads/{head}\n")
    repository.init(level="full")
    assert f"branches: [{branch}]" in repository.workflow("deploy")


def test_notes__of_a_configuration_that_cannot_be_read_as_a_whole(tmp_path: Path) -> None:
    told = " ".join(clone(tmp_path, {"sqlmesh.yaml": "gateways: [\n"}).init().split())
    assert "The configuration of . cannot be read as a whole without running it." in told


def test_notes__of_a_state_that_is_not_written_and_a_spark_that_is_not_served(
    tmp_path: Path,
) -> None:
    files = {
        "sqlmesh.yaml": "gateways: {spark: {connection: {type: spark}}}\n",
        "requirements.txt": "pyspark==2.4.0\n",
    }
    told = " ".join(clone(tmp_path, files).init(level="apply").split())
    assert "No state connection is written in the configuration." in told
    assert "requirements.txt has PySpark 2.4.0, and applies work with 3.4" in told
