"""Another PySpark than the one that is installed; more of them: `python -m tests.matrix --pyspark`."""

from __future__ import annotations

import pytest

from tests.conftest import missing
from tests.matrix.cells import PYSPARK_VERSIONS, run
from tests.matrix.installed import NotInstalledError, python_with

pytestmark = pytest.mark.own_jvm

OLDEST = PYSPARK_VERSIONS[0]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.night
def test_oldest_pyspark__has_a_life(java: None) -> None:
    try:
        python_with(OLDEST, "pyspark")
    except NotInstalledError as error:
        missing(str(error))

    done = run(OLDEST, ["apply, cleanup"], "pyspark")

    assert done.passed, done.told
