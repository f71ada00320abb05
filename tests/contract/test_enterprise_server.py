"""The examples for GitHub Enterprise Server: made of the others, without what the server lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.test_linters import ZIZMOR, assert_clean, lint
from tests.contract.test_workflows import jobs, load, steps
from tests.enterprise_server import EXAMPLES, TARGET, UPLOAD, variants

FILES = sorted(TARGET.glob("*.yml"))
every = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_variants__are_what_the_examples_make_of_them() -> None:
    stored = {path.name: path.read_text("utf-8") for path in FILES}
    assert stored == variants(), "python -m tests.enterprise_server"
    assert set(stored) == {path.name for path in EXAMPLES.glob("*.yml")}


@every
def test_variants__have_no_key_that_the_server_lacks(path: Any) -> None:
    workflow = load(path)
    assert set(workflow["concurrency"]) <= {"group", "cancel-in-progress"}
    for job in jobs(workflow):
        assert isinstance(job.get("environment", ""), str), "`deployment` is github.com's"
        assert "self-hosted" in job["runs-on"]
    for step in steps(workflow):
        if "upload-artifact" in step.get("uses", ""):
            assert UPLOAD.startswith(step["uses"])


@every
def test_variants__say_nothing_of_what_is_gone(path: Any) -> None:
    text = path.read_text("utf-8")
    assert "in order instead" not in text
    assert "queue: max" not in "".join(line for line in text.splitlines() if "#" not in line)


@every
def test_variants__keep_permissions_and_triggers(path: Any) -> None:
    mine, theirs = load(path), load(EXAMPLES / path.name)
    assert mine["on"] == theirs["on"]
    assert [job["permissions"] for job in jobs(mine)] == [j["permissions"] for j in jobs(theirs)]


def test_variants__keep_the_schema_and_the_linters_rules() -> None:
    names = [str(path) for path in FILES]
    assert_clean(lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *names))
    found = json.loads(lint(*ZIZMOR, "--format=json", *names).stdout)
    # Runners of one's own are what the server has; docs/installation.md says how to treat them.
    assert {each["ident"] for each in found} == {"self-hosted-runner"}
