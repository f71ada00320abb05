"""Which lines of a requirements file leave no version of SQLMesh that is supported."""

from __future__ import annotations

import pytest

from ci_bot.protocol.supported_versions import find_excluding_requirement, is_supported


@pytest.mark.parametrize("version", ["0.227.1", "0.228.0", "0.236.4", "0.236.99", "0.236.5rc1"])
def test_supported__from_the_oldest_to_the_newest(version: str) -> None:
    assert is_supported(version)


@pytest.mark.parametrize("version", ["0.227.0", "0.100", "0.237.0", "0.237.0.dev1", "1.0", ""])
def test_supported__nothing_else(version: str) -> None:
    assert not is_supported(version)


ALLOWED = """
sqlmesh
sqlmesh==0.227.1
sqlmesh == 0.228 --hash=sha256:00
sqlmesh[postgres,web]==0.236.4 ; python_version >= "3.11"
sqlmesh>=0.200
sqlmesh>=0.226,<0.228
sqlmesh<=0.227.1
sqlmesh~=0.235.2
sqlmesh~=0.236
sqlmesh==0.230.*
sqlmesh!=0.229.0
sqlmesh>=0.229,!=0.229.*
sqlmesh==0.236.5rc1
sqlmesh==0.236.900
sqlmesh-extras==0.1
sqlmesh_dbt==0.1
sqlmeshes==0.1
sqlmesh @ https://example.org/sqlmesh-0.230.1-py3-none-any.whl
"""
EXCLUDED = """
sqlmesh==0.227.0
SQLMesh[postgres] == 0.225.0 --hash=sha256:00
sqlmesh===0.226.0
sqlmesh<0.227.1
sqlmesh<=0.227.0
sqlmesh>=0.200,<0.227
sqlmesh~=0.226.0
sqlmesh==0.226.*
sqlmesh==0.237.0
sqlmesh>=0.237
sqlmesh==0.237.*
sqlmesh~=0.237.1
sqlmesh>=0.236,<0.237,!=0.236.*
sqlmesh==0.237.0rc1
sqlmesh==1.0
sqlmesh (==0.220.0)
"""


@pytest.mark.parametrize("line", ALLOWED.strip().splitlines())
def test_requirement__that_leaves_a_version(line: str) -> None:
    assert find_excluding_requirement(line) is None


@pytest.mark.parametrize("line", EXCLUDED.strip().splitlines())
def test_requirement__that_leaves_none(line: str) -> None:
    assert find_excluding_requirement(line) is not None
