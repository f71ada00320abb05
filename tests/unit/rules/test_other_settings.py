"""Settings without a rule of their own: what nobody approves, hears or keeps any more."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import files, seen

APPROVER = "users:\n- username: ana\n  github_username: Ana-1\n  roles: [required_approver]\n"
TWO = APPROVER + "- {username: bo, roles: [required_approver]}\n"
NOTIFIED = "notification_targets:\n- {type: console, notify_on: [audit_failure, run_failure]}\n"
OF_A_USER = (
    "users:\n- username: ana\n  notification_targets: [{type: console, notify_on: [run_failure]}]\n"
)


def severities(old: str, new: str) -> dict[str, str]:
    """By the setting, what a changed configuration is found to be."""
    inputs = files({"config.yaml": f"project: a\n{old}"}, {"config.yaml": f"project: a\n{new}"})
    return {
        name: item.severity
        for item in seen(inputs, "configuration-changed")
        for name in item.subject
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pinned_environments: [q1, q2]", "pinned_environments: [Q2]", "high"),
        ("pinned_environments: [q1]", "", "high"),
        ("pinned_environments: q1", "pinned_environments: [q1, q2]", "info"),
        (APPROVER, "", "high"),
        (APPROVER, APPROVER.replace("[required_approver]", "[]"), "high"),
        (TWO, APPROVER, "high"),
        (APPROVER, TWO, "info"),
        (APPROVER, APPROVER.replace("username: ana", "username: anna"), "info"),
        (NOTIFIED, "", "high"),
        (NOTIFIED, NOTIFIED.replace("audit_failure, ", ""), "high"),
        (NOTIFIED, NOTIFIED.replace("audit_failure", "audit_failure, apply_start"), "info"),
        (NOTIFIED, NOTIFIED.replace("{type: console,", "{type: slack_webhook, url: u,"), "info"),
        (NOTIFIED.replace("audit_failure, run_failure", "apply_start"), "", "info"),
        (OF_A_USER, OF_A_USER.replace("run_failure", "run_end"), "high"),
        ("env_vars: {A: x}", "env_vars: {A: y}", "high"),
        ("username: ana", "username: bo", "high"),
        ("log_limit: 20", "log_limit: 30", "info"),
        ("cicd_bot: {prod_branch_name: a}", "cicd_bot: {prod_branch_name: b}", "high"),
        ("cicd_bot: {prod_branch_name: a}", "", "high"),
        ("", "cicd_bot: {prod_branch_name: main}", "low"),
        ("", "cicd_bot: {prod_branch_name: next}", "high"),
        ("", "cicd_bot: {forward_only_branch_suffix: -forward-only}", "low"),
        ("", "cicd_bot: {forward_only_branch_suffix: x}", "high"),
        ("", "cicd_bot: {auto_categorize_changes: {sql: 'off'}}", "high"),
        ("cicd_bot: {run_on_deploy_to_prod: false}", "", "low"),
        ("", "run: {environment_check_max_wait: 1}", "high"),
        ("run: {environment_check_max_wait: 600}", "run: {environment_check_max_wait: 900}", "low"),
        ("run: {environment_check_max_wait: 600}", "", "low"),
        ("", "run: {environment_check_interval: 5}", "info"),
        ("", "environment_suffix_target: schema", "info"),
        ("default_target_environment: prod", "", "info"),
        ("cicd_bot: {merge_method: squash}", "cicd_bot: {merge_method: merge}", "low"),
        ("", "cicd_bot: {check_if_blocked_on_deploy_to_prod: false}", "high"),
        (
            "cicd_bot: {auto_categorize_changes: {sql: full}}",
            "cicd_bot: {auto_categorize_changes: {sql: 'off'}}",
            "high",
        ),
        ("snapshot_ttl: in 1 day", "snapshot_ttl: in 30 days", "low"),
        ("snapshot_ttl: in 30 days", "snapshot_ttl: in 1 month", "low"),
        ("snapshot_ttl: in 2 weeks", "", "medium"),
        ("environment_ttl: in 3 days", "", "low"),
        ("environment_ttl: in 1 week", "environment_ttl: in 2 weeks", "low"),
        ("environment_ttl: in 1 week", "environment_ttl: in 36 hours", "medium"),
        ("", "environment_ttl: in 1 day", "medium"),
        # Words that SQLMesh's own reader of dates knows, and nobody here.
        ("environment_ttl: in 1 week", "environment_ttl: tomorrow", "medium"),
    ],
)
def test_setting__by_what_nobody_does_any_more(old: str, new: str, expected: str) -> None:
    (severity,) = set(severities(old, new).values())
    assert severity == expected


def test_setting__says_which_failures_nobody_hears_of() -> None:
    inputs = files({"config.yaml": f"a: 1\n{NOTIFIED}"}, {"config.yaml": "a: 1\n"})
    (found,) = seen(inputs, "configuration-changed")
    assert "nobody here gets notice of audit_failure, run_failure any more" in found.evidence
