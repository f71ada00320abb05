"""A credential in a file needs a literal that looks like one; who only speaks of them has none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.redaction.shapes import (
    ISSUED,
    PLACED,
    CredentialShapeSet,
    find_issued_credentials,
    find_placed_credentials,
)
from ci_bot.worker.rules.files.credentials import (
    LONGEST_LINE,
    FoundSecret,
    list_credentials_in_file,
    may_file_hold_credential,
)
from tests.unit.redaction.innocents import INNOCENT_LINES
from tests.unit.redaction.leaks import LEAKS, UPPER, Leak, made, pem
from tests.unit.rules.world import files, seen


def found_in(text: str, path: str) -> list[FoundSecret]:
    lines = text.splitlines()
    surest = [list_credentials_in_file(lines, number, path)[:1] for number in range(len(lines))]
    return [found.credential for line in surest for found in line]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_leak__is_found(leak: Leak) -> None:
    found = found_in(leak.text, leak.path)
    assert found
    assert any(credential.sure for credential in found) == leak.surely


@pytest.mark.parametrize(("path", "line"), INNOCENT_LINES)
def test_innocent_line__is_left_alone(path: str, line: str) -> None:
    assert found_in(line, path) == []


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_leak__is_not_passed_over_with_its_file(leak: Leak) -> None:
    for text in (leak.text, f"first\n{leak.text}\nlast"):
        assert may_file_hold_credential(text, leak.path, CredentialShapeSet.select_for_text(text))


@pytest.mark.parametrize(("path", "line"), INNOCENT_LINES)
def test_innocent_line__stays_innocent_beside_a_leak(path: str, line: str) -> None:
    """A rule that knows whole lines only would let the leak through."""
    assert list_credentials_in_file([line, "k = 'AKIA" + made("beside", 16, UPPER) + "'"], 1, path)


def test_table__every_shape_has_a_leak() -> None:
    text = "\n".join(f"{leak.text}\n{leak.text.replace(chr(10), chr(32))}" for leak in LEAKS)
    used = {
        shape
        for line in text.splitlines()
        for finds in (find_issued_credentials, find_placed_credentials)
        for shape, _ in finds(line)
    }
    assert [shape.pattern.pattern for shape in ISSUED + PLACED if shape not in used] == []


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_finding__never_shows_the_secret(leak: Leak) -> None:
    inputs = files({leak.path: "a: 1\n"}, {leak.path: f"a: 1\n{leak.text}\n"})
    findings = seen(inputs, "hardcoded-secret") + seen(inputs, "env-file-tracked")
    assert findings
    for finding in findings:
        shown = finding.model_dump_json()
        assert not any(line in shown for line in leak.secret.splitlines() if len(line) > 5)


# --- how sure it is -------------------------------------------------------------------------------


def test_finding__by_the_name_alone_is_a_note() -> None:
    inputs = files({}, {"config.yaml": "a: 1\npassword: hunter\n"})
    (found,) = seen(inputs, "hardcoded-secret")
    assert (found.severity, found.line) == ("medium", 2)
    assert "may be" in found.evidence


def test_finding__with_a_literal_that_looks_like_one_blocks() -> None:
    inputs = files({}, {"config.yaml": "a: 1\npassword: hunter22\n"})
    assert [found.severity for found in seen(inputs, "hardcoded-secret")] == ["blocker"]


@pytest.mark.parametrize(
    "line",
    [
        "WHERE password = 'hunter22'",
        f"WHERE token = '{made('column', 32)}'",
        f"WHERE SESSION_TOKEN = '{made('column', 32)}'",
        "WHERE `password` = 'hunter22'",
        "WHERE \"password\" = 'hunter22'",
    ],
)
def test_sql__a_column_that_is_compared_is_at_most_a_note(line: str) -> None:
    (found,) = found_in(line, "models/m.sql")
    assert not found.sure


@pytest.mark.parametrize("column", ["passport", "token_count", "password_hash", "passport_number"])
@pytest.mark.parametrize(
    "pattern", ["{} = 'Abc123xyz789def'", "{} VARCHAR(20)", "{} := 'Abc123xyz789'", "a AS {},"]
)
def test_sql__a_column_with_such_a_name_is_no_credential(column: str, pattern: str) -> None:
    assert found_in(pattern.format(column), "models/m.sql") == []
    assert found_in(f"  {column}: Abc123xyz789def", "external_models.yaml") == []


# --- where it stands ------------------------------------------------------------------------------


def test_finding__names_every_line_of_a_kind() -> None:
    text = "".join(f"password_{n}: 'Qz7-{made(str(n), 9)}'\n" for n in range(5))
    (found,) = seen(files({}, {"config.yaml": text}), "hardcoded-secret")
    assert found.evidence.startswith("Lines 1, 2, 3 and 2 more hold a credential")


def test_long_line__is_read_for_issued_credentials() -> None:
    account = {"type": "service_account", "private_key": pem(), "pad": "x" * LONGEST_LINE}
    assert found_in(json.dumps(account), "keys/sa.json")[0].what == "a private key"


def test_one_line_service_account__is_found() -> None:
    account = {"type": "service_account", "private_key": pem() + "\n", "client_email": "a@b"}
    line = json.dumps(account)
    assert found_in(line, "keys/sa.json")
    assert found_in(f"GCP = '{line}'", "config.py")


def test_key__that_only_is_spoken_of_is_none() -> None:
    text = "# looks for -----BEGIN PRIVATE KEY-----\nSELECT a, b FROM t"
    assert found_in(text, "models/m.sql") == []


def test_unit_tests__rows_may_have_columns_of_any_name() -> None:
    assert found_in("- {user_id: 1, password: hunter22}", "tests/test_m.yaml") == []
    assert found_in(f"- {{id: 1, token: ghp_{made('row', 36)}}}", "tests/test_m.yaml")


@given(st.text(max_size=80), st.sampled_from(["config.yaml", "models/m.sql", "m.py", "x", "a.xml"]))
def test_any_text__can_be_read(text: str, path: str) -> None:
    for credential in found_in(f"password: {text}\n{text}='{text}'", path):
        assert credential.what


# --- what the base branch holds, and what is for the same machine ---------------------------------

ADDRESS = "URL = 'postgresql://sa:Dev_Local123!@db.internal:5432/dev'\n"


def heavy(before: dict[str, str | bytes | None], after: dict[str, str | bytes | None]) -> list[str]:
    return [finding.severity for finding in seen(files(before, after), "hardcoded-secret")]


def test_base__a_file_that_moves_with_its_credential() -> None:
    before: dict[str, str | bytes | None] = {"scripts/dev.py": f"import os\n{ADDRESS}"}
    after: dict[str, str | bytes | None] = {"ops/dev.py": f"import os\n{ADDRESS}"}
    assert heavy(before, after) == ["medium"]
    (found,) = seen(files(before, after), "hardcoded-secret")
    assert "the base branch holds the same value already" in found.evidence


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ADDRESS, ADDRESS.replace("URL", "DATABASE")),
        (ADDRESS, f"if True:\n    {ADDRESS}"),
        (ADDRESS, ADDRESS.replace("db.internal", "db2.internal")),
        ("password: Wq7-abc12!\n", "state:\n  password: 'Wq7-abc12!'\n"),
        (pem() + "\n", f"key: |\n{pem()}\n"),
    ],
)
def test_base__a_line_around_a_credential_that_is_edited(before: str, after: str) -> None:
    path = "config.yaml" if before.startswith("password") else "a.py"
    assert set(heavy({path: before}, {path: after})) <= {"medium"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ADDRESS, ADDRESS.replace("Local123", "Local124")),
        ("", ADDRESS),
        ("# Dev_Local123! was the name of a ship\n", ADDRESS),  # a word there, and no credential
        (ADDRESS, f"{ADDRESS}OTHER = 'postgresql://sa:An0ther_one!@db.internal/x'\n"),
        (ADDRESS, ADDRESS.replace("\n", "  # password='Wq7-abc12!'\n")),  # one old, one new
    ],
)
def test_base__what_is_new_anywhere_blocks(before: str, after: str) -> None:
    assert "blocker" in heavy({"a.py": before}, {"a.py": after})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_same_machine__a_password_of_people_is_a_note(host: str) -> None:
    local = ADDRESS.replace("db.internal", host)
    assert heavy({}, {"a.py": local}) == ["medium"]
    drawn = local.replace("Dev_Local123!", made("tunnel", 20))
    assert heavy({}, {"a.py": drawn}) == ["blocker"], "a tunnel may lead to a real server"


@pytest.mark.parametrize("host", ["localhost.corp.example", "db", "localhost-2", "10.127.0.0.1"])
def test_other_machine__that_is_called_alike_blocks(host: str) -> None:
    assert heavy({}, {"a.py": ADDRESS.replace("db.internal", host)}) == ["blocker"]
