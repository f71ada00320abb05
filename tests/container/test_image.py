"""What is in the image, who may do what in it, and that a workflow's variables cannot bend it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .engine import Engine
from .fixtures import ROOT

SHELL = ("--entrypoint", "/bin/sh")
# What the bot does before anything of a project is loaded.
DROP = "setpriv --reuid worker --regid worker --clear-groups --no-new-privs --"


def shell(engine: Engine, image: str, script: str, *options: str) -> str:
    """Output of a shell script in the image; a failure of it fails the test."""
    return engine.run(image, "-euc", script, options=(*SHELL, *options)).stdout


def test_entry__help_answers(engine: Engine, image: str) -> None:
    done = engine.run(image, "--help")
    assert "Usage:" in done.stdout


def test_entry__a_hostile_workflow_environment_changes_nothing(
    engine: Engine, image: str, tmp_path: Path
) -> None:
    # Each of these files would announce itself if Python took it up.
    for name in ("ci_bot.py", "click.py", "sitecustomize.py", "usercustomize.py", "startup.py"):
        (tmp_path / name).write_text('print("HOSTILE")\n', "utf-8")
    hostile = {
        "PATH": "utter-nonsense",
        "PYTHONPATH": "/hostile",
        "PYTHONHOME": "/hostile",
        "PYTHONSTARTUP": "/hostile/startup.py",
        "PYTHONUSERBASE": "/hostile",
        "PYTHONINSPECT": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONIOENCODING": "ascii",
        "LC_ALL": "tlh_KX.nonsense",
        "LANG": "nonsense",
        "HOME": "/nonexistent",
    }
    options = ["--volume", f"{tmp_path}:/hostile:ro", "--workdir", "/hostile"]
    for name, value in hostile.items():
        options += ["--env", f"{name}={value}"]
    friendly = engine.run(image, "--help")
    done = engine.run(image, "--help", options=options)
    assert "HOSTILE" not in done.stdout + done.stderr
    assert done.stdout == friendly.stdout
    assert done.stderr == friendly.stderr


def test_accounts__entry_is_root_and_worker_is_nobody_in_particular(
    engine: Engine, image: str
) -> None:
    assert shell(engine, image, "id -u").strip() == "0"
    assert shell(engine, image, "id worker").strip() == (
        "uid=10001(worker) gid=10001(worker) groups=10001(worker)"
    )
    entry = shell(engine, image, "getent passwd worker").strip().split(":")
    assert entry[5:] == ["/nonexistent", "/usr/sbin/nologin"]


def test_worker__cannot_read_the_environment_of_process_1(engine: Engine, image: str) -> None:
    script = f"""
        tr '\\0' '\\n' < /proc/1/environ | grep -c '^CANARY=' || true
        {DROP} cat /proc/1/environ 2>&1 || true
        {DROP} grep -E '^(NoNewPrivs|Groups|CapEff)' /proc/self/status
    """
    output = shell(engine, image, script, "--env", "CANARY=ghs_secret")
    as_root, *as_worker = output.splitlines()
    assert as_root == "1"
    assert "Permission denied" in as_worker[0]
    assert "ghs_secret" not in output
    status = dict(line.replace("\t", " ").split(":", 1) for line in as_worker[1:])
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Groups"].strip() == ""
    assert int(status["CapEff"], 16) == 0


def test_worker__cannot_change_the_image_or_gain_rights(engine: Engine, image: str) -> None:
    places = " ".join(f"! -path '{path}/*'" for path in ("/proc", "/sys", "/dev"))
    writable = f"find / -xdev -writable ! -type l {places}"
    found = shell(engine, image, f"{DROP} {writable} 2>/dev/null || true").split()
    assert sorted(found) == ["/run/lock", "/tmp", "/var/tmp"]
    assert shell(engine, image, "find / -xdev -perm /6000 -type f").split() == []


def test_worker__cannot_use_the_docker_socket(engine: Engine, image: str, tmp_path: Path) -> None:
    connect = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/var/run/docker.sock'); "
        "print('connected')"
    )
    # A listener with the owner and mode that the real socket has, in the place where it is mounted.
    script = f"""
        python3 -c "import socket, time; s = socket.socket(socket.AF_UNIX);
s.bind('/var/run/docker.sock'); s.listen(); time.sleep(30)" &
        until [ -S /var/run/docker.sock ]; do :; done
        chmod 660 /var/run/docker.sock
        python3 -c "{connect}"
        {DROP} python3 -c "{connect}" 2>&1 || true
    """
    output = shell(engine, image, script)
    assert output.splitlines()[0] == "connected"
    assert output.splitlines()[-1].startswith("PermissionError")


@pytest.mark.parametrize(
    "path",
    [
        "/src",
        "/build",
        "/wheels",
        "/root/.cache",
        "/run/secrets/ca",
        "/run/secrets/pip_conf",
        "/usr/bin/gcc",
        "/usr/bin/pip3",
        "/usr/bin/curl",
    ],
)
def test_content__nothing_of_the_build_is_left(engine: Engine, image: str, path: str) -> None:
    assert shell(engine, image, f"if [ -e {path} ]; then echo there; fi") == ""


def test_content__no_package_lists(engine: Engine, image: str) -> None:
    assert shell(engine, image, "find /var/lib/apt/lists -type f") == ""


def test_content__certificates_are_debians_own(engine: Engine, image: str) -> None:
    ours = shell(engine, image, "find /usr/share/ca-certificates -name '*.crt' | wc -l")
    bundle = shell(engine, image, "grep -c 'BEGIN CERTIFICATE' /etc/ssl/certs/ca-certificates.crt")
    assert int(bundle) == int(ours) > 100
    assert shell(engine, image, "find /usr/local/share/ca-certificates -type f") == ""


def test_content__history_names_no_secret(engine: Engine, image: str) -> None:
    history = engine.call("history", "--no-trunc", "--format", "{{.CreatedBy}}", image).stdout
    assert "/run/secrets" not in history
    assert "PIP_INDEX_URL" not in history
    variables = engine.call(
        "image", "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}", image
    ).stdout.split()
    assert sorted(name.partition("=")[0] for name in variables) == [
        "JAVA_HOME",
        "LC_ALL",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
    ]


def test_content__every_package_is_the_locked_one(engine: Engine, image: str) -> None:
    locked = dict(
        re.findall(
            r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE
        )
    )
    script = (
        "from importlib import metadata; import re; "
        "print(*(re.sub(r'[-_.]+', '-', d.name).lower() + '==' + d.version "
        "for d in metadata.distributions()))"
    )
    done = engine.run(image, "-I", "-c", script, options=("--entrypoint", "/opt/ci-bot/bin/python"))
    installed = dict(entry.split("==") for entry in done.stdout.split())
    assert installed.pop("sqlmesh-plan-review")
    assert installed == locked


def test_content__python_and_java_are_the_promised_ones(engine: Engine, image: str) -> None:
    output = shell(engine, image, "/opt/ci-bot/bin/python -V; $JAVA_HOME/bin/java -version 2>&1")
    assert "Python 3.11." in output
    assert 'openjdk version "17.' in output


def test_content__pip_is_there_for_a_projects_own_requirements(engine: Engine, image: str) -> None:
    output = shell(engine, image, f"{DROP} /opt/ci-bot/bin/python -I -m pip --version")
    assert output.startswith("pip ")


def test_content__container_file_names_the_workers_account(engine: Engine, image: str) -> None:
    # ci_bot.host reads it beside the interpreter, and switches the cage on.
    content = json.loads(shell(engine, image, "cat /opt/ci-bot/ci-bot-container.json"))
    assert content == {
        "uid": int(shell(engine, image, "id -u worker")),
        "gid": int(shell(engine, image, "id -g worker")),
        "java_home": "/opt/java",
    }


def test_content__templates_travel_with_the_package(engine: Engine, image: str) -> None:
    found = shell(engine, image, "ls /opt/ci-bot/lib/python3.11/site-packages/ci_bot/templates")
    wanted = {path.name for path in (ROOT / "templates").iterdir()}
    assert wanted
    assert wanted <= set(found.split())


UNCOMPILED = """
import sys
import github, pandas, sqlmesh.core.context, sqlmesh.core.test, sqlmesh.magics
import ci_bot.bot.cli.commands, ci_bot.worker.review.review_plan
from pathlib import Path
for module in list(sys.modules.values()):
    compiled = getattr(module, "__cached__", None)
    if compiled and compiled.startswith("/opt/ci-bot/lib/") and not Path(compiled).is_file():
        print(module.__name__)
"""


def test_content__what_a_review_imports_is_compiled(engine: Engine, image: str) -> None:
    python = ("--entrypoint", "/opt/ci-bot/bin/python")
    assert engine.run(image, "-I", "-c", UNCOMPILED, options=python).stdout == ""


def test_content__time_zones_are_debians_for_every_package(engine: Engine, image: str) -> None:
    script = (
        "import pandas, pytz, zoneinfo; "
        "one = pandas.Timestamp('2026-07-01 12:00', tz='Europe/Berlin'); "
        "two = one.tz_convert(pytz.timezone('US/Eastern')); "
        "three = one.tz_convert(zoneinfo.ZoneInfo('Asia/Tokyo')); "
        "print(one.hour, two.hour, three.hour, len(pytz.all_timezones) > 500)"
    )
    python = ("--entrypoint", "/opt/ci-bot/bin/python")
    assert engine.run(image, "-I", "-c", script, options=python).stdout == "12 6 19 True\n"
