"""A team's policy and an owner's acceptance, on pull requests of the GitHub stand-in."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.e2e.job import Job, Outcome
from tests.e2e.scene import BOT, Change, Edit, Scene, add_largest, add_orders
from tests.github_standin.script import forbidden
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POLICY = """\
severity:
  - rule: [filter-changed, R06-breaking-rebuild]
    severity: low
    models: shop.top_customers
    reason: thresholds move every week
"""
OWNERS = "* @maintainer\n/project/models/top* @writer\n"
RULES = ("filter-changed", "R06-breaking-rebuild")
MODEL = "shop.top_customers"


def threshold(amount: int) -> Edit:
    """Another filter in a view: Review."""

    def edit(shop: Shop) -> None:
        path = shop.project / "models/top_customers.sql"
        lines = path.read_text("utf-8").splitlines()
        kept = [line for line in lines if not line.strip().startswith("r.revenue >")]
        path.write_text("\n".join([*kept, f"  r.revenue > {amount}"]) + "\n", "utf-8")

    return edit


def policy(text: str) -> Edit:
    return lambda shop: (shop.project / ".sqlmesh-review.yaml").write_text(text, "utf-8")


def both(*edits: Edit) -> Edit:
    def edit(shop: Shop) -> None:
        for one in edits:
            one(shop)

    return edit


def on_main(scene: Scene, edit: Edit) -> None:
    """Something that the default branch has already."""
    scene.commit("main", edit, "Agree on it")
    scene.push("main")


def owners(scene: Scene) -> None:
    def edit(shop: Shop) -> None:
        (shop.project.parent / "CODEOWNERS").write_text(OWNERS, "utf-8")

    on_main(scene, edit)


def weights(outcome: Outcome) -> dict[str, str]:
    """The weight of each finding on the model that counts."""
    risks: list[dict[str, Any]] = outcome.document("report")["risks"]
    return {r["rule"]: r["severity"] for r in risks if r["model"] == MODEL and r["rule"] in RULES}


def command(change: Change, text: str, author: str = "writer") -> Outcome:
    """Somebody writes a command, and comments.yml starts apply.yml for it."""
    asked = change.pull.add_comment(text, author)
    inputs = {"mode": "accept", "comment-id": str(asked["id"])}
    return change.dispatch(inputs, actor=BOT)


def accept(change: Change, rule: str, author: str = "writer", why: str = "seen") -> Outcome:
    return command(change, f'/sqlmesh accept {rule} {MODEL} "{why}"', author)


def test_policy__of_the_base_counts_and_that_of_the_head_is_a_finding(scene: Scene) -> None:
    change = scene.open("silence", both(threshold(200), policy(POLICY)))
    outcome = change.review("opened")
    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.outputs["decision"] == "review"
    assert set(weights(outcome).values()) == {"high"}
    text = change.sticky()
    assert "policy-changed" in text
    assert "would weigh low" in text

    change.merge()
    later = scene.open("later", threshold(300))
    outcome = later.review("opened")
    assert outcome.outputs["decision"] == "go", outcome.stdout
    assert set(weights(outcome).values()) == {"low"}
    text = later.sticky()
    assert "By itself high" in text
    assert "thresholds move every week" in text
    assert "policy-changed" not in text


@pytest.mark.night
def test_policy__of_a_branch_of_ones_own_makes_nothing_lighter(scene: Scene) -> None:
    scene.commit("lax", policy(POLICY))
    scene.push("lax")
    change = scene.open("change", threshold(200))
    change.review("opened")
    # It is pointed at the branch with the policy, whose commit is the base of the merge then.
    git = scene.git
    git("checkout", "-q", "--detach", "lax")
    git("merge", "-q", "--no-ff", "-m", "Merge change into lax", "change")
    change.merge_sha = git("rev-parse", "HEAD")
    scene.repo.push_git(git.root, {f"refs/pull/{change.number}/merge": change.merge_sha})
    event = change.pull.event("synchronize")
    event["pull_request"]["base"]["ref"] = "lax"
    outcome = scene.run(
        Job("pull_request", event, sha=change.merge_sha), scene.checkout(change.merge_sha)
    )
    assert outcome.outputs["decision"] == "review", outcome.stdout
    assert set(weights(outcome).values()) == {"high"}
    assert "makes nothing lighter here" in outcome.summary


def test_policy__that_cannot_be_used_is_exit_2_with_its_line(scene: Scene) -> None:
    wrong = POLICY.replace("filter-changed", "filter-chnged")
    change = scene.open("typo", policy(wrong))
    outcome = change.review("opened")
    assert outcome.exit_code == 2, outcome.stdout
    assert outcome.outputs["reason-code"] == "bad_policy"
    (error, *_) = outcome.annotations("error")
    assert "line 2: there is no rule `filter-chnged`" in error
    assert "line 2: there is no rule" in change.sticky().replace("`", "")


@pytest.mark.night
def test_accept__by_the_owner_holds_until_the_model_changes(scene: Scene) -> None:
    owners(scene)
    change = scene.open("threshold", threshold(200))
    first = change.review("opened")
    assert first.outputs["decision"] == "review", first.stdout
    found = weights(first)
    assert found
    check = change.check()
    assert check["conclusion"] == "action_required"
    assert "may accept it, as an owner" in check["output"]["summary"]
    placed = {(one["path"], one["title"].partition(": ")[2]) for one in check["annotations"]}
    assert {("project/models/top_customers.sql", rule) for rule in found} <= placed
    assert not any(rule in line for line in first.annotations("warning") for rule in found)

    for rule in found:
        outcome = accept(change, rule, why="the owner has looked")
        assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["decision"] == "go"
    assert change.check()["conclusion"] == "success"
    text = change.sticky()
    assert "accepted by its owner" in text
    assert "the owner has looked" in text
    assert "writer" in text

    # Something else is pushed: it holds.
    change.push(lambda shop: (shop.project / "NOTES.md").write_text("notes\n"))
    assert change.review("synchronize").outputs["decision"] == "go"

    # The comment is edited, and says nothing of it any more: the ledger counts.
    change.pull.edit_comment(change.sticky_id(), "gone", "writer")
    assert change.review("synchronize").outputs["decision"] == "go"

    # The model changes: it falls, and that is said.
    change.push(threshold(300))
    outcome = change.review("synchronize")
    assert outcome.outputs["decision"] == "review"
    assert set(weights(outcome)) == set(found)
    assert any("no longer holds" in note for note in outcome.document("report")["notes"])


@pytest.mark.night
def test_accept__is_refused_to_everybody_else(scene: Scene) -> None:
    owners(scene)
    change = scene.open("threshold", threshold(200))
    rule = next(iter(weights(change.review("opened"))))
    body = change.sticky()
    scene.repo.grant("writer", "read")
    lost = accept(change, rule)
    scene.repo.grant("writer", "write")
    cases = (
        (lost, 3, "permission"),
        (accept(change, rule, "maintainer"), 3, "not_the_owner"),
        (accept(change, rule, "reader"), 3, "permission"),
        (accept(change, "select-star"), 2, "no_such_finding"),
        (accept(change, "R12-code-on-load"), 3, "not_acceptable"),
        (command(change, f"/sqlmesh accept {rule} {MODEL}"), 3, "bad_comment"),
        (command(change, "/sqlmesh cleanup"), 3, "bad_comment"),
    )
    for outcome, code, reason in cases:
        assert outcome.exit_code == code, f"{reason}: {outcome.stdout}"
        assert outcome.outputs["reason-code"] == reason
    assert change.sticky() == body, "the review is as it was"
    # Whoever may write can make the bot's comment say anything: it accepts nothing.
    forged = f"{body}\n\n1 accepted by its owner: Accepted by `@writer` on 2026-11-22: seen."
    change.pull.edit_comment(change.sticky_id(), forged, "writer")
    assert change.review("synchronize").outputs["decision"] == "review"


@pytest.mark.night
def test_accept__by_a_comment_that_was_edited_is_refused(scene: Scene) -> None:
    owners(scene)
    change = scene.open("threshold", threshold(200))
    rule = next(iter(weights(change.review("opened"))))
    asked = change.pull.add_comment("What is this?", "writer")
    time.sleep(1.1)  # GitHub's times are whole seconds
    change.pull.edit_comment(asked["id"], f'/sqlmesh accept {rule} {MODEL} "x"', "maintainer")
    outcome = change.dispatch({"mode": "accept", "comment-id": str(asked["id"])}, actor=BOT)
    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "bad_comment"
    assert change.review("synchronize").outputs["decision"] == "review"


@pytest.mark.night
def test_accept__by_whom_the_pull_request_makes_an_owner_is_refused(scene: Scene) -> None:
    owners(scene)

    def mine(shop: Shop) -> None:
        (shop.project.parent / "CODEOWNERS").write_text("* @maintainer\n", "utf-8")

    change = scene.open("threshold", both(threshold(200), mine))
    rule = next(iter(weights(change.review("opened"))))
    outcome = accept(change, rule, "maintainer")
    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "not_the_owner"


TRUST = "trust:\n  code-on-load: writers\n"
CODE_ON_LOAD = "R12-code-on-load"


def macro(rate: int) -> Edit:
    """Code that runs on load, and that no model uses."""

    def edit(shop: Shop) -> None:
        folder = shop.project / "macros"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "rates.py").write_text(f"RATE = {rate}\n", "utf-8")

    return edit


def on_load(outcome: Outcome) -> dict[str, Any]:
    risks: list[dict[str, Any]] = outcome.document("report")["risks"]
    return next(risk for risk in risks if risk["rule"] == CODE_ON_LOAD)


@pytest.mark.night
def test_trust__of_writers_counts_for_verified_commits_and_an_apply_decides_the_same(
    scene: Scene,
) -> None:
    on_main(scene, both(macro(1), policy(TRUST)))
    change = scene.open("rates", both(macro(2), add_orders))
    outcome = change.review("opened")
    assert outcome.outputs["decision"] == "review", outcome.stdout
    found = on_load(outcome)
    assert found["severity"] == "high"
    first = change.pull.head_sha
    assert f"GitHub has not verified commit `{first[:7]}`" in found["evidence"]

    scene.repo.sign(first, "author", "web-flow")
    outcome = change.review("synchronize")
    assert outcome.outputs["decision"] == "go", outcome.stdout
    assert on_load(outcome)["severity"] == "low"
    text = change.sticky()
    assert "By itself high" in text and "`@author` may write to this repository" in text
    assert "rates.py" in text and "could still be forged" in text
    plan = change.marker().plan
    assert plan is not None

    outcome = change.dispatch({"plan-id": plan[:12]})
    assert outcome.exit_code == 0, outcome.stdout
    assert change.marker().decision == "go"

    # Somebody with write permission pushes what an outsider has written.
    change.push(add_largest)
    scene.repo.sign(change.pull.head_sha, "outsider", "writer")
    outcome = change.review("synchronize")
    assert outcome.outputs["decision"] == "review", outcome.stdout
    assert "`@outsider` wrote a part of it" in on_load(outcome)["evidence"]

    # GitHub does not answer: as without the policy.
    scene.repo.sign(change.pull.head_sha, "author", "writer")
    commits = r"/repos/.*/pulls/\d+/commits"
    scene.standin.script.on("GET", commits, forbidden())
    outcome = change.review("synchronize")
    assert outcome.outputs["decision"] == "review", outcome.stdout
    assert "GitHub did not say who wrote it" in on_load(outcome)["evidence"]
