"""SQLMesh's own failures about a connection: they say what is wrong, and not with which value."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmesh.core.config import Config
from sqlmesh.core.config.loader import load_configs

from ci_bot.redaction import redact_shapes
from ci_bot.redaction.known_secrets import read_dotenv_secrets

PASSWORD = "hunter" + "22pw"
YAML = """\
gateways:
  lake:
    connection: {type: duckdb}
    state_connection:
      type: postgres
      host: db.internal
      user: bot
      port: 5432
      database: state
      password: %s
model_defaults: {dialect: spark}
"""
# What a password may begin with, or look like, in YAML that was written or filled in without quotes.
IN_YAML = {
    "at": f"@{PASSWORD}",
    "percent": f"%{PASSWORD}",
    "backtick": f"`{PASSWORD}",
    "star": f"*{PASSWORD}",
    "bang": f"!{PASSWORD}",
    "brace": f"{{{PASSWORD}",
    "bracket": f"[{PASSWORD}",
    "colon": f"{PASSWORD}: x",
    "quote": f'"{PASSWORD}',
    "tab": f"\t{PASSWORD}",
    "the next line": f"|\n  {PASSWORD}",
    "twice": f"{PASSWORD}\n      password: {PASSWORD}2",
    "a list": f"[{PASSWORD}]",
    "a mapping": f"{{a: {PASSWORD}}}",
}
PYTHON = "from sqlmesh.core.config import *\nPASSWORD = 'hunter' + '22pw'\nconfig = Config(gateways={%s})\n"
STATE = '"lake": GatewayConfig(state_connection=PostgresConnectionConfig(host="h", user="bot", %s))'
IN_PYTHON = {
    "wrong port": STATE % 'password=PASSWORD, port="abc", database="d"',
    "password as port": STATE % "password='x', port=PASSWORD, database='d'",
    "missing": STATE % "password=PASSWORD, port=1",
    "misspelt": STATE % "pasword=PASSWORD, port=1, database='d'",
    "a list": STATE % "password=[PASSWORD], port=1, database='d'",
    "an address": '"lake": f"postgresql://bot:{PASSWORD}@h/d"',
    "a mapping": '"lake": {"connection": {"type": "postgres", "password": PASSWORD, "port": "abc"}}',
    "no configuration": '}) and {"lake": {"password": PASSWORD}} or dict(a={',
}


def told(directory: Path, name: str, text: str) -> str:
    """What SQLMesh says of a configuration, or of what it was made of."""
    (directory / name).write_text(text, encoding="utf-8")
    try:
        loaded = load_configs(None, Config, [directory])
    except Exception as error:
        return str(error)
    return repr(loaded)


@pytest.mark.parametrize("case", IN_YAML)
def test_yaml__that_fails_repeats_no_password(case: str, tmp_path: Path) -> None:
    shown = redact_shapes(told(tmp_path, "config.yaml", YAML % IN_YAML[case]))
    assert shown
    assert PASSWORD not in shown


@pytest.mark.parametrize("case", IN_PYTHON)
def test_python__that_fails_repeats_no_password(case: str, tmp_path: Path) -> None:
    shown = redact_shapes(told(tmp_path, "config.py", PYTHON % IN_PYTHON[case]))
    assert shown
    assert PASSWORD not in shown


def test_yaml__still_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    shown = redact_shapes(told(tmp_path, "config.yaml", YAML % f"@{PASSWORD}"))
    assert "found character '@' that cannot start any token" in shown
    assert "line 10, column 17" in shown
    assert "password: ***" in shown


def test_dotenv__is_read_as_sqlmesh_reads_it() -> None:
    text = '# c\nexport A=hunter22\nB = \'x y\'\nC="p\\"q" # why\nD=\nno setting\nE=a b # c\n'
    assert read_dotenv_secrets(text) == {
        "A": "hunter22",
        "B": "x y",
        "C": 'p\\"q',
        "D": "",
        "E": "a b",
    }
