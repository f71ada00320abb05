"""Each release line of PostgreSQL, as the state's server: `python -m tests.matrix --postgres`."""

from __future__ import annotations

import os

import pytest

from tests.conftest import missing
from tests.databases import POSTGRES, postgres_programs
from tests.matrix.cells import ON_POSTGRES, run
from tests.maven import JarMissingError

pytestmark = [pytest.mark.own_jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.night]


@pytest.mark.parametrize("line", POSTGRES)
def test_line__holds_a_state(line: str, java: None) -> None:
    try:
        postgres_programs(line, os.environ)
    except JarMissingError as error:
        missing(str(error))

    done = run(line, list(ON_POSTGRES), "postgres")

    assert done.passed, done.told
