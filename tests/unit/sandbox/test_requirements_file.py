"""Which requirements are installed, and that pip is asked for exactly what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from ci_bot.bot.sandbox.caged_pip import (
    list_requirements_missing_in_sandbox,
    select_index_lines_for_sandboxed_pip,
)
from ci_bot.bot.sandbox.requirements import check_requirements_before_sandbox
from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import (
    NEWEST,
    SOURCES,
    find_source_requirement,
    read_pinned_version,
    was_tried,
)


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_txt", ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def test_check__wheels_from_an_index(tmp_path: Path) -> None:
    write(
        tmp_path,
        requirements_txt="""
            # comment with git+https://example.org/x
            --index-url https://pypi.example.org/simple   # ours
            --extra-index-url=https://user:pass@other.example.org/simple
            sqlmesh[duckdb]==0.236.4 ; python_version >= "3.11"
            pyspark~=3.5.0 \\
                --hash=sha256:0000
            helper @ https://example.org/helper-1.0-py3-none-any.whl#sha256=00
            -r project/more.txt
            -cproject/limits.txt
        """,
        project__more_txt="requests\n-r ../last.txt\n-r more.txt\n",
        project__limits_txt="pandas<3\n",
        last_txt="six\n",
    )
    assert check_requirements_before_sandbox(tmp_path, "requirements.txt") == [
        "requirements.txt",
        "project/more.txt",
        "project/limits.txt",
        "last.txt",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "-e .",
        "-e.",
        "--editable ./package",
        "./package",
        "../package",
        "/srv/package",
        "file:///srv/package",
        "package @ file:///srv/package.whl",
        "git+https://example.org/x.git",
        "package @ git+ssh://git@example.org/x.git@main",
        "https://example.org/x-1.0.tar.gz",
        "package @ https://example.org/x-1.0.zip#sha256=00",
        "x-1.0.tar.gz",
        "--no-binary :all:",
        "--no-binary=:all:",
        "sqlmesh==1 --global-option=x",
        'sqlmesh==1 --config-settings "a=b"',
        "sql\\\nmesh @ git+https://example.org/x",
    ],
)
def test_check__what_would_build_or_leave_the_index(tmp_path: Path, line: str) -> None:
    write(tmp_path, requirements_txt=f"six\n{line}\n")
    with pytest.raises(BadInput, match="cannot be used") as failure:
        check_requirements_before_sandbox(tmp_path, "requirements.txt")
    assert failure.value.exit_code == 2


@pytest.mark.parametrize("line", ["sqlmesh==0.226.0", "sqlmesh[postgres]>=0.237"])
def test_check__a_sqlmesh_that_is_not_supported__is_told_with_the_way_out(
    tmp_path: Path, line: str
) -> None:
    write(tmp_path, requirements_txt="-r more.txt\n", more_txt=f"six\n{line}\n")
    with pytest.raises(BadInput, match=r"more\.txt.* asks for .*0\.227\.1 to 0\.236") as failure:
        check_requirements_before_sandbox(tmp_path, "requirements.txt")
    assert (failure.value.exit_code, failure.value.reason_code) == (2, "sqlmesh_version")
    assert "sqlmesh migrate" in (failure.value.hint or "")


@pytest.mark.parametrize("include", ["-r ../outside.txt", "-r /etc/passwd", "-c link.txt"])
def test_check__includes_that_leave_the_repository(tmp_path: Path, include: str) -> None:
    write(tmp_path, outside_txt="six", repo__requirements_txt=include)
    (tmp_path / "repo" / "link.txt").symlink_to("../outside.txt")
    with pytest.raises(BadInput, match="leads out"):
        check_requirements_before_sandbox(tmp_path / "repo", "requirements.txt")


def test_check__missing_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, requirements_txt="-r none.txt\n-r https://example.org/x.txt\n-e .\n")
    with pytest.raises(BadInput) as failure:
        check_requirements_before_sandbox(tmp_path, "requirements.txt")
    assert "no file `none.txt`" in failure.value.message
    assert "`-e .`" in failure.value.message


def item(name: str, *, sha256: str | None = "00", direct: bool = False) -> dict[str, Any]:
    archive = {"hashes": {"sha256": sha256}} if sha256 else {}
    return {
        "metadata": {"name": name, "version": "1.0"},
        "is_direct": direct,
        "download_info": {"url": f"https://example.org/{name}.whl", "archive_info": archive},
    }


def test_locked__with_all_hashes_or_none() -> None:
    assert list_requirements_missing_in_sandbox(
        {"install": [item("a"), item("b", direct=True)]}
    ) == [
        "a==1.0 --hash=sha256:00",
        "b @ https://example.org/b.whl --hash=sha256:00",
    ]
    assert list_requirements_missing_in_sandbox(
        {"install": [item("a"), item("b", sha256=None)]}
    ) == [
        "a==1.0",
        "b==1.0",
    ]
    assert list_requirements_missing_in_sandbox({"install": []}) == []


def test_index_lines__where_packages_come_from(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "--index-url=https://a\nsix\n-f wheels\n--find-links https://b\n--no-index\n-r x\n"
    )
    assert select_index_lines_for_sandboxed_pip(file) == [
        "--index-url=https://a",
        f"-f {tmp_path / 'wheels'}",
        "--find-links https://b",
        "--no-index",
    ]


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("pyspark==4.1.4", "4.1.4"),
        ("PySpark[sql] == 3.4.4  # as the cluster", "3.4.4"),
        ("pyspark===3.5.1; python_version > '3.9'", "3.5.1"),
        ("pyspark==3.5.1 --hash=sha256:00", "3.5.1"),
        ("pyspark~=3.5.0", None),
        ("pyspark==3.5.*", None),
        ("pyspark-extension==3.5.1", None),
        ("sqlmesh==0.236.4", None),
    ],
)
def test_pinned__is_one_version_of_pyspark(line: str, version: str | None) -> None:
    assert read_pinned_version(line) == version


def test_sources__are_of_what_was_tried() -> None:
    assert all(was_tried(version) for version in SOURCES)
    assert list(SOURCES) == sorted(SOURCES, key=Version)
    assert list(SOURCES)[-1] == NEWEST
    assert find_source_requirement("4.1.4") == f"pyspark==4.1.4 --hash=sha256:{SOURCES['4.1.4']}"
    assert find_source_requirement("9.9.1") is None
