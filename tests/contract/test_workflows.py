"""The workflows, ours and the ones to copy: who may start what, with which rights, in which order.

The linters know the general rules (test_linters.py); these are the ones of this action.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.cli.setup.plan_files import find_action_release

ROOT = Path(__file__).resolve().parents[2]
# The one that does not use this action: it writes prod.
DEPLOY = ROOT / ".github" / "examples" / "deploy.yml"
EXAMPLES = sorted(set(DEPLOY.parent.glob("*.yml")) - {DEPLOY})
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = find_action_release(None).repository
# What needs no Spark takes the small image.
WITHOUT_SPARK = {"review", "comments"}
ALL_PERMISSIONS = {"contents": "read", "pull-requests": "write"}
# Of each job, in the order of the file.
PERMISSIONS = {
    "review": [{**ALL_PERMISSIONS, "checks": "write"}],
    "apply": [{**ALL_PERMISSIONS, "actions": "read", "checks": "write"}],
    "cleanup": [ALL_PERMISSIONS, {"contents": "read", "pull-requests": "read", "issues": "write"}],
    "comments": [
        {"actions": "write", "pull-requests": "write"},
        {"actions": "read", "pull-requests": "write"},
    ],
}


def load(path: Path) -> Any:
    """A workflow as YAML 1.2, so that the key `on` stays a word."""
    return YAML(typ="safe").load(path.read_text("utf-8"))


def example(name: str) -> Any:
    return load(ROOT / ".github" / "examples" / f"{name}.yml")


def jobs(workflow: Any) -> Iterator[Any]:
    yield from workflow["jobs"].values()


def steps(workflow: Any) -> Iterator[Any]:
    for job in jobs(workflow):
        yield from job["steps"]


def uses(workflow: Any, action: str) -> list[Any]:
    """The steps of an action, or of one in a directory of it."""
    named = re.compile(rf"{re.escape(action)}(/[\w-]+)?@")
    return [step for step in steps(workflow) if named.match(step.get("uses", ""))]


def by_name(path: Path) -> str:
    return path.stem


every = pytest.mark.parametrize("path", [*OWN, *EXAMPLES, DEPLOY], ids=by_name)
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=by_name)


def test_examples__of_this_action_are_the_four() -> None:
    assert {path.stem for path in EXAMPLES} == set(PERMISSIONS)


@every
def test_permissions__nothing_by_default_and_a_reason_for_each_grant(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for job in jobs(workflow):
        assert job["permissions"]
    granted = re.findall(
        r"^ {6}[a-z-]+: (?:read|write)\b(.*)$", path.read_text("utf-8"), re.MULTILINE
    )
    # Of two jobs with the same words one has them by a YAML alias.
    written = {id(job["permissions"]): job["permissions"] for job in jobs(workflow)}
    assert len(granted) == sum(map(len, written.values()))
    for comment in granted:
        assert re.match(r" # \w", comment), f"{path.name}: say what the permission is for"


@every_example
def test_permissions__are_exactly_what_the_activity_needs(path: Path) -> None:
    assert [job["permissions"] for job in jobs(load(path))] == PERMISSIONS[path.stem]


@every
def test_actions__are_pinned_by_commit_with_their_version_beside(path: Path) -> None:
    lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert lines or path.stem == "none"
    for line in lines:
        assert re.search(r"uses: [\w-]+/[\w-]+(/[\w-]+)?@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), (
            line
        )


def test_actions__one_commit_per_action_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for path in [*OWN, *EXAMPLES, DEPLOY]:
        for name, rest in re.findall(
            r"uses: ([\w-]+/[\w-]+)(?:/[\w-]+)?@(.+)$", path.read_text("utf-8"), re.M
        ):
            pins.setdefault(name, set()).add(rest)
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


@every
def test_limits__each_job_has_a_time_limit_above_the_workers(path: Path) -> None:
    for job in jobs(load(path)):
        assert job["timeout-minutes"] > 0
        for step in job["steps"]:
            worker = step.get("with", {}).get("timeout-minutes")
            if worker is not None:
                # What is left is for the report, the comment and the artifact.
                assert job["timeout-minutes"] - worker >= 5


@every
def test_checkout__leaves_no_credentials_behind(path: Path) -> None:
    for step in uses(load(path), "actions/checkout"):
        assert step["with"]["persist-credentials"] is False


@every
def test_scripts__take_values_from_variables_only(path: Path) -> None:
    for step in steps(load(path)):
        assert "${{" not in step.get("run", "")


@every
def test_concurrency__is_said_on_purpose(path: Path) -> None:
    concurrency = load(path)["concurrency"]
    assert concurrency["group"]
    assert "cancel-in-progress" in concurrency


@every_example
def test_secrets__come_from_a_protected_environment(path: Path) -> None:
    for job in jobs(load(path)):
        if "secrets." in str(job["steps"]):
            assert job["environment"]["name"].startswith("sqlmesh-")
            # Most of these runs deploy nothing, and none deploys the commit that would be shown.
            assert job["environment"]["deployment"] is False


@every_example
def test_action__is_used_once_a_job_with_known_inputs(path: Path) -> None:
    workflow = load(path)
    used = uses(workflow, ACTION)
    assert len(used) == len(workflow["jobs"])
    known = load(ROOT / "action.yml")["inputs"]
    for step in used:
        assert set(step.get("with", {})) <= set(known)
        small = step["uses"].startswith(f"{ACTION}/review@")
        drift = step["with"].get("mode") == "drift"
        assert small == (path.stem in WITHOUT_SPARK or drift)


def test_review__runs_on_pull_request_or_by_hand_and_never_on_its_target() -> None:
    workflow = example("review")
    assert set(workflow["on"]) == {"pull_request", "workflow_dispatch", "merge_group"}
    actions = ["opened", "synchronize", "reopened", "ready_for_review", "edited"]
    assert workflow["on"]["pull_request"] == {"types": actions}
    inputs = workflow["on"]["workflow_dispatch"]["inputs"]
    # comments.yml's run sends this one by name; it must need no other.
    assert [name for name, given in inputs.items() if given.get("required")] == ["pr-number"]
    (step,) = uses(workflow, ACTION)
    for name in inputs:
        assert step["with"][name] == f"${{{{ inputs.{name} }}}}"


def test_review__is_all_that_its_workflow_can_be_started_for() -> None:
    workflow = example("review")
    assert "mode" not in workflow["on"]["workflow_dispatch"]["inputs"]
    (step,) = uses(workflow, ACTION)
    assert step["with"]["mode"] == "review"


def test_review__has_credentials_of_its_own_and_no_other_workflow_has_a_review() -> None:
    assert example("review")["jobs"]["review"]["environment"]["name"] == "sqlmesh-review"
    for path in EXAMPLES:
        text = path.read_text("utf-8")
        if path.stem != "review":
            # Drift reads the state with the account of reviews, and loads no pull request.
            text = text.partition("\n  drift:\n")[0] if path.stem == "cleanup" else text
            assert "sqlmesh-review" not in re.sub(r"uses:.*|group:.*", "", text), path.stem
            assert "_READER" not in text
            modes = (load(path)["on"].get("workflow_dispatch") or {}).get("inputs", {}).get("mode")
            assert modes is None or "review" not in modes["options"]
        else:
            assert "_WRITER" not in text
            assert "WAREHOUSE" not in text


_TOKEN = re.compile(r"\s*(&&|\|\||==|!=|!|[(),]|'[^']*'|[\w.-]+)")


def evaluate(expression: str, **known: Any) -> Any:
    """A workflow's expression of `&&`, `||`, `!`, comparisons and `format`, for given contexts.

    As in GitHub's language what is absent is null, and `&&` and `||` give one of their operands.
    """
    words = {"&&": " and ", "||": " or ", "!": " not ", "format": "format_"}
    python = ""
    for token in _TOKEN.findall(expression):
        if token in words:
            python += words[token]
        elif re.fullmatch(r"[\w-]+(\.[\w-]+)+", token):
            python += f"at({token!r})"
        else:
            python += token

    def at(path: str) -> Any:
        value: Any = known
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    return eval(  # noqa: S307 - text of our own workflows
        python, {"at": at, "format_": lambda text, *given: text.format(*given), "true": True}
    )


def fill(text: str, **known: Any) -> str:
    """A text of a workflow with its expressions replaced by their values."""
    return re.sub(r"\$\{\{(.+?)\}\}", lambda hit: str(evaluate(hit[1], **known) or ""), text)


def started(**event: Any) -> dict[str, Any]:
    """The contexts of a run of review.yml: pull request 7, run 99."""
    inputs = event.pop("inputs", {})
    return {"github": {"event": event, "run_id": 99}, "inputs": inputs}


PULL = {"number": 7}
RETARGETED = {"base": {"ref": {"from": "main"}, "sha": {"from": "b" * 40}}}
PUSHED = started(action="synchronize", pull_request=PULL)
ANOTHER_BASE = started(action="edited", pull_request=PULL, changes=RETARGETED)
ANOTHER_TITLE = started(action="edited", pull_request=PULL, changes={"title": {"from": "x"}})
BY_HAND = started(inputs={"pr-number": "7"})
QUEUE = "refs/heads/gh-readonly-queue/main/pr-7-"
QUEUED = started(action="checks_requested", merge_group={"head_ref": f"{QUEUE}{'b' * 40}"})


def test_review__a_newer_run_for_the_pull_request_replaces_the_one_before_it() -> None:
    concurrency = example("review")["concurrency"]
    assert concurrency["cancel-in-progress"] is True
    groups = {fill(concurrency["group"], **run) for run in (PUSHED, ANOTHER_BASE, BY_HAND)}
    assert groups == {"sqlmesh-review-pr-7"}


def test_review__entries_of_a_merge_queue_do_not_stop_each_other() -> None:
    group = example("review")["concurrency"]["group"]
    other = started(action="checks_requested", merge_group={"head_ref": f"{QUEUE}{'c' * 40}"})
    assert len({fill(group, **run) for run in (QUEUED, other, PUSHED)}) == 3
    assert fill(group, **QUEUED).endswith(f"{QUEUE}{'b' * 40}")


def test_review__an_edit_of_the_title_starts_nothing_and_leaves_the_check_alone() -> None:
    """A job that is left out counts as a check that has passed, so it must not have that name."""
    workflow = example("review")
    (job,) = jobs(workflow)
    group = workflow["concurrency"]["group"]
    for run in (PUSHED, ANOTHER_BASE, BY_HAND, QUEUED):
        assert evaluate(job["if"], **run)
        assert fill(job["name"], **run) == "Review the plan"
    assert not evaluate(job["if"], **ANOTHER_TITLE)
    assert fill(job["name"], **ANOTHER_TITLE) == "Edit of the title or text"
    assert fill(group, **ANOTHER_TITLE) not in (fill(group, **PUSHED), fill(group, **BY_HAND))


def test_review__fetches_the_merge_commit_and_its_base() -> None:
    (checkout,) = uses(example("review"), "actions/checkout")
    assert checkout["with"]["fetch-depth"] == 2
    # Nothing on pull_request, where the default is the merge commit that the run is about; but with
    # another base branch that can be the one with the former branch.
    ref = checkout["with"]["ref"]
    assert (fill(ref, **PUSHED), fill(ref, **QUEUED)) == ("", "")
    assert {fill(ref, **run) for run in (BY_HAND, ANOTHER_BASE)} == {"refs/pull/7/merge"}


def test_apply_and_cleanup__wait_for_each_other_and_are_never_cancelled() -> None:
    apply, cleanup = example("apply")["concurrency"], example("cleanup")["concurrency"]
    for concurrency in (apply, cleanup):
        assert concurrency["cancel-in-progress"] is False
        assert concurrency["queue"] == "max"
    prefix = "sqlmesh-environment-pr-"
    assert apply["group"] == prefix + "${{ inputs.pr-number }}"
    closed = {"github": {"event": {"pull_request": PULL}}, "inputs": {}}
    assert fill(cleanup["group"], **closed) == fill(apply["group"], inputs={"pr-number": "7"})
    assert fill(cleanup["group"], github={"event": {}}, inputs={}) == "sqlmesh-sweep"


def test_apply__is_started_by_dispatch_only() -> None:
    workflow = example("apply")
    assert set(workflow["on"]) == {"workflow_dispatch"}
    inputs = workflow["on"]["workflow_dispatch"]["inputs"]
    assert inputs["pr-number"]["required"] is True
    # comments.yml's run sends these by name.
    assert {"pr-number", "plan-id", "comment-id", "mode", "override-reason"} <= set(inputs)
    (step,) = uses(workflow, ACTION)
    for name in inputs:
        assert step["with"][name] == f"${{{{ inputs.{name} }}}}"


def test_apply__checks_out_the_merge_commit_but_not_for_a_cleanup() -> None:
    (checkout,) = uses(example("apply"), "actions/checkout")
    assert checkout["with"]["ref"] == (
        "${{ inputs.mode != 'cleanup' && format('refs/pull/{0}/merge', inputs.pr-number)"
        " || github.sha }}"
    )


def test_comments__no_checkout_and_no_secrets_in_any_job() -> None:
    workflow = example("comments")
    assert set(workflow["on"]) == {"issue_comment", "workflow_run"}
    assert uses(workflow, "actions/checkout") == []
    for job in jobs(workflow):
        assert "secrets." not in str(job)
        # No unpacking on the disk, no script: one step, and it parses in memory.
        assert len(job["steps"]) == 1


def test_comments__each_event_starts_the_job_that_is_for_it() -> None:
    command, report = jobs(example("comments"))
    assert command["if"].startswith("github.event_name == 'issue_comment'")
    assert report["if"].startswith("github.event_name == 'workflow_run'")
    for job in (command, report):
        # Nothing of the condition can be true for the other event.
        assert " || " not in re.sub(r"\(.*\)", "", job["if"])


def test_comments__a_command_does_not_wait_for_another_one() -> None:
    group = example("comments")["concurrency"]["group"]
    for event in ({"comment": {"id": 5}}, {"workflow_run": {"head_sha": 5}}):
        assert fill(group, github={"event": event}) == "sqlmesh-comments-5"


def test_comments__no_job_for_other_comments() -> None:
    workflow = example("comments")
    assert workflow["on"]["issue_comment"] == {"types": ["created"]}
    job, _ = jobs(workflow)
    assert "github.event.issue.pull_request" in job["if"]
    for blanks in ("", " ", "  ", "   "):
        assert f"startsWith(github.event.comment.body, '{blanks}/sqlmesh')" in job["if"]


def test_cleanup__runs_for_every_closed_pull_request() -> None:
    # A `paths` or `branches` filter, or a condition on the job, is how closings get lost.
    workflow = example("cleanup")
    assert workflow["on"]["pull_request_target"] == {"types": ["closed"]}
    assert "if" not in workflow["jobs"]["cleanup"]


def test_cleanup__checks_out_the_default_branch_and_nothing_of_the_pull_request() -> None:
    # The base branch of a stacked pull request is gone when GitHub closes it for that reason.
    for checkout in uses(example("cleanup"), "actions/checkout"):
        assert checkout["with"]["ref"] == "${{ github.event.repository.default_branch }}"
    text = (ROOT / ".github" / "examples" / "cleanup.yml").read_text("utf-8")
    assert "github.event.pull_request.base" not in text
    assert "github.event.pull_request.head" not in text
    assert "refs/pull/" not in text
    assert "github.head_ref" not in text


def test_sweep__is_nightly_or_by_hand_one_at_a_time() -> None:
    workflow = example("cleanup")
    assert set(workflow["on"]) == {"pull_request_target", "schedule", "workflow_dispatch"}
    assert workflow["concurrency"]["cancel-in-progress"] is False
    step, drift = uses(workflow, ACTION)
    # With the account of reviews, and never for a pull request.
    assert drift["with"]["mode"] == "drift"
    job = workflow["jobs"]["drift"]
    assert job["environment"]["name"] == "sqlmesh-review"
    assert "github.event_name != 'pull_request_target'" in job["if"]
    assert job["permissions"] == {
        "contents": "read",
        "pull-requests": "read",
        "issues": "write",
    }
    for event, mode, cache in (
        ("pull_request_target", "cleanup", "none"),
        ("schedule", "sweep", "base"),
        ("workflow_dispatch", "sweep", "base"),
    ):
        run = {"github": {"event_name": event}, "inputs": {}}
        assert fill(step["with"]["mode"], **run) == mode
        asked = {"github": {"event_name": "workflow_dispatch"}, "inputs": {"mode": "doctor"}}
        assert fill(step["with"]["mode"], **asked) == "doctor"
        # Noted is what the default branch has, by a run that nobody outside can start.
        assert fill(step["with"]["cache"], **run) == cache
    (save,) = uses(workflow, "actions/cache/save")
    assert "github.event_name != 'pull_request_target'" in save["if"]


def test_fork_comment__sees_the_report_only_as_data() -> None:
    workflow = example("comments")
    assert workflow["on"]["workflow_run"]["workflows"] == [example("review")["name"]]
    assert workflow["on"]["workflow_run"]["types"] == ["completed"]
    _, job = jobs(workflow)
    assert "head_repository.full_name != github.repository" in job["if"]
    assert "conclusion != 'skipped'" in job["if"]


def test_deploy__writes_prod_with_sqlmesh_alone_behind_an_environment_of_its_own() -> None:
    workflow = load(DEPLOY)
    assert uses(workflow, ACTION) == [], "this action never writes prod"
    (job,) = jobs(workflow)
    assert job["environment"] == "sqlmesh-prod"
    for path in EXAMPLES:
        assert "sqlmesh-prod" not in path.read_text("utf-8")
    assert job["permissions"] == {"contents": "read", "pull-requests": "read", "actions": "read"}
    # A pull request never starts it, and no run of it is left out or cancelled.
    assert set(workflow["on"]) == {"push", "workflow_dispatch"}
    assert workflow["concurrency"] == {
        "group": "sqlmesh-deploy",
        "cancel-in-progress": False,
        "queue": "max",
    }


def test_deploy__reads_the_report_that_the_review_keeps() -> None:
    fetch = next(step["run"] for step in steps(load(DEPLOY)) if "gh run" in step.get("run", ""))
    (upload,) = uses(example("review"), "actions/upload-artifact")
    assert f"--name {upload['with']['name']} " in fetch
    assert "--workflow review.yml" in fetch
    # The newest run may be one that was left out, for an edit of the title, or cancelled.
    assert "--limit 1 " not in fetch
    assert '.conclusion == "success" or .conclusion == "failure"' in fetch


def test_reports__are_kept_under_one_name_also_after_a_no_go() -> None:
    for name in ("review", "apply", "cleanup"):
        (upload,) = uses(example(name), "actions/upload-artifact")
        assert upload["with"]["name"] == "ci-bot-report"
        assert upload["if"].startswith("${{ !cancelled() && steps.")
        assert upload["with"]["path"].endswith(".outputs.report-path }}")


def test_release__attests_and_names_the_digest() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "release.yml")
    builds = uses(workflow, "docker/build-push-action")
    # Two images on two machines.
    assert len(builds) == 4
    for build in builds:
        assert build["with"]["provenance"] == "mode=max"
        assert build["with"]["sbom"] is True
    *images, package = (step["with"] for step in uses(workflow, "actions/attest"))
    assert package == {"subject-checksums": "${{ runner.temp }}/package/SHA256SUMS"}
    attested = [image["subject-digest"] for image in images]
    assert attested == [f"${{{{ steps.index.outputs.{image} }}}}" for image in ("full", "review")]
    pinned = workflow["jobs"]["publish"]["outputs"]
    assert [text.partition("@")[2] for text in pinned.values()] == attested
    assert (
        'release.py pin "$IMAGE" "$REVIEW_IMAGE"' in workflow["jobs"]["commit"]["steps"][-1]["run"]
    )


def groups_of(workflow: Any, job: str) -> list[str]:
    """The groups of `.ci/test` that a job's matrix names."""
    return [each["group"] for each in workflow["jobs"][job]["strategy"]["matrix"]["include"]]


def known_groups() -> tuple[list[str], str]:
    """Those of `.ci/test` by day, and the one that stands in for the unit tests at night."""
    script = (ROOT / ".ci" / "test").read_text("utf-8")
    (listed,) = re.findall(r"^readonly groups=\((.+)\)$", script, re.MULTILINE)
    (first,), (at_night,) = (
        re.findall(rf"^readonly {name}=(\w+)$", script, re.MULTILINE)
        for name in ("first_group", "group_at_night")
    )
    return [first, *listed.split()], at_night


def test_ci__runs_every_group_of_tests_once_and_the_quick_ones_first() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "ci.yml")
    early, parts = groups_of(workflow, "early"), groups_of(workflow, "parts")
    by_day, at_night = known_groups()
    assert early == ["static", "unit"]
    assert sorted([*early, *parts]) == sorted([*by_day, at_night])
    assert workflow["jobs"]["parts"]["needs"] == "early"


def test_groups__leave_no_folder_of_tests_out() -> None:
    """Each folder is named by one group, or it is not ignored by the last one."""
    script = (ROOT / ".ci" / "test").read_text("utf-8")
    ignored = set(re.findall(r"--ignore=(tests/[\w]+)", script))
    named = set(re.findall(r"(?<!=)(tests/[a-z0-9_]+)(?=[\s/;])", script))
    assert ignored <= named, "what the last group leaves out has a group of its own"
    halves = re.findall(r"tests/integration/test_\[(\w)-(\w)\]\*\.py", script)
    assert halves == [("a", "l"), ("m", "z")]


def test_nightly__asks_for_all_generated_inputs_and_nothing_else_does() -> None:
    nightly = load(ROOT / ".github" / "workflows" / "nightly.yml")
    (step,) = [step for step in nightly["jobs"]["groups"]["steps"] if "run" in step]
    assert step["env"] == {"CI_BOT_FUZZ": "full", "GROUP": "${{ matrix.group }}"}
    assert step["run"] == '.ci/run "$GROUP"'
    by_day, at_night = known_groups()
    expected = [at_night if group == "unit" else group for group in by_day]
    assert sorted(groups_of(nightly, "groups")) == sorted(expected)
    assert "CI_BOT_FUZZ=" not in (ROOT / ".ci" / "test").read_text("utf-8")
    assert "CI_BOT_FUZZ:" not in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_nightly__reviews_with_each_other_python_that_is_supported() -> None:
    nightly = load(ROOT / ".github" / "workflows" / "nightly.yml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    least, below = re.findall(r"3\.(\d+)", project["requires-python"])
    supported = {f"3.{minor}" for minor in range(int(least), int(below))}
    assert {*nightly["jobs"]["pythons"]["strategy"]["matrix"]["python"], "3.11"} == supported
