"""What a process says of the files that it opens: both ends, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox import worker_output
from ci_bot.bot.sandbox.worker_output import SandboxedTraceReader, list_files_opened_in_sandbox

HOOK = Path(worker_output.__file__).parents[2] / "worker" / "runtime" / "load_trace.py"
START = """\
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("load_trace", {hook!r})
load_trace = importlib.util.module_from_spec(spec)
sys.modules["load_trace"] = load_trace
spec.loader.exec_module(load_trace)
load_trace.install_load_trace({descriptor}, [{root!r}])
sys.dont_write_bytecode = True
os.chdir({root!r})
sys.path.insert(0, {root!r})
"""


def traced(root: Path, program: str) -> SandboxedTraceReader:
    """Runs a program under the hook, as the bootstrap installs it, and reads what it says."""
    reader, writer = os.pipe()
    found = SandboxedTraceReader()
    text = START.format(hook=str(HOOK), descriptor=writer, root=str(root))
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", text + textwrap.dedent(program)], pass_fds=(writer,)
        )
        os.close(writer)
        while data := os.read(reader, 65_536):
            found.feed_bytes(data)
        process.wait()
    finally:
        os.close(reader)
    return found


def opened(found: SandboxedTraceReader, root: Path, *changed: str) -> frozenset[str]:
    return list_files_opened_in_sandbox(changed, [found], roots=(root,), checkout=root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose path has a link in it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    return (tmp_path / "link").resolve()


NATIVE = next(iter(sorted(Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("_*.so"))), None)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        ("import helper", {"helper.py"}),
        ("import package.inner", {"package/inner.py"}),
        ("import runpy; runpy.run_path('helper.py')", {"helper.py"}),
        ("exec(open('helper.py').read())", {"helper.py"}),
        ("exec(os.read(os.open('helper.py', os.O_RDONLY), 9))", {"helper.py"}),
        ("import io; io.FileIO('helper.py')", {"helper.py"}),
        ("from pathlib import Path; Path('data.txt').read_text()", {"data.txt"}),
        ("sys.path.insert(0, 'lib.zip'); import zipped", {"lib.zip"}),
        ("import site; site.addsitedir('.')", {"extra.pth"}),
        ("import ctypes\ntry: ctypes.CDLL('./data.txt')\nexcept OSError: pass", {"data.txt"}),
        ("import linked", {"linked.py", "helper.py"}),
        ("import turned.inner", {"turned", "package/inner.py"}),
        ("import first", {"first.py", "package/second.py", "package/inner.py"}),
        ("import package.second", {"package/second.py", "package/inner.py"}),
        ("os.chdir('package'); exec(open('../helper.py').read())", {"helper.py"}),
        ("os.fork() or exec(\"import helper; os._exit(0)\")\nos.wait()", {"helper.py"}),
        ("import threading; t = threading.Thread(target=__import__, args=('helper',))\n"
         "t.start(); t.join()", {"helper.py"}),
        ("import subprocess; subprocess.run(['true', 'helper.py'])", {"helper.py"}),
        ("import subprocess; subprocess.run(['true', '--conf=a.b=helper.py'])", {"helper.py"}),
        ("os.system('true helper.py')", {"helper.py"}),
        ("os.open('inner.py', os.O_RDONLY, dir_fd=os.open('package', 0))", {"package/inner.py"}),
        ("try: open('inner.txt')\nexcept OSError: pass", set()),
        ("import helper; os.close(1); del sys.modules['helper']", {"helper.py"}),
        ("", set()),
        ("import json, decimal", set()),
        ("import load_trace\nwith load_trace.exclude_from_load_trace(): open('helper.py').read()", set()),
    ],
)  # fmt: skip
def test_file__is_told_however_it_is_opened(root: Path, program: str, wanted: set[str]) -> None:
    for name in ("helper.py", "package/inner.py", "package/__init__.py", "never.py"):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    (root / "data.txt").write_text("x")
    (root / "extra.pth").write_text("# nothing\n")
    (root / "linked.py").symlink_to("helper.py")
    (root / "turned").symlink_to("package")
    (root / "first.py").symlink_to("package/second.py")
    (root / "package" / "second.py").symlink_to("inner.py")
    with zipfile.ZipFile(root / "lib.zip", "w") as archive:
        archive.writestr("zipped.py", "x = 1")

    found = traced(root, program)

    changed = ("helper.py", "package/inner.py", "never.py", "data.txt", "extra.pth")
    links = ("linked.py", "turned", "first.py", "package/second.py")
    assert opened(found, root, *changed, *links, "lib.zip") == wanted


@pytest.mark.skipif(NATIVE is None, reason="this Python has no native module in a file")
def test_native_module__is_told(root: Path) -> None:
    assert NATIVE is not None
    name = NATIVE.name.split(".")[0]
    (root / "package").mkdir()
    (root / "package" / f"{name}.abi3.so").write_bytes(NATIVE.read_bytes())

    found = traced(root, f"import package.{name}")

    assert opened(found, root, f"package/{name}.abi3.so") == {f"package/{name}.abi3.so"}


def test_byte_code__stands_for_its_source(root: Path) -> None:
    (root / "helper.py").write_text("x = 1\n")
    traced(root, "sys.dont_write_bytecode = False; import helper")
    assert list((root / "__pycache__").iterdir())

    found = traced(root, "import helper")

    assert opened(found, root, "helper.py") == {"helper.py"}


def test_file__is_told_before_its_code_runs(root: Path) -> None:
    """Code that ends its process at once, and code that fights the trace, are on the list."""
    (root / "helper.py").write_text("import os\nos.closerange(3, 256)\nos._exit(0)\n")
    (root / "other.py").write_text("import os\nos.kill(os.getpid(), 9)\n")

    assert opened(traced(root, "import helper"), root, "helper.py") == {"helper.py"}
    assert opened(traced(root, "import other"), root, "other.py") == {"other.py"}


def test_file__that_cannot_be_told__cannot_be_opened(root: Path) -> None:
    (root / "helper.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    program = "try: import helper\nexcept OSError: pass\n"
    found = traced(root, f"os.closerange(3, 256)\n{program}{program}")

    assert not (root / "ran").exists()
    assert opened(found, root, "helper.py") == frozenset()


def test_name__with_odd_characters(root: Path) -> None:
    name = "a\nb ä\udcff.txt"
    (root / name).write_text("x")

    found = traced(root, f"open({name!r}).read()")

    # As git's names are read: what is no UTF-8 is replaced.
    assert opened(found, root, "a\nb ä\ufffd.txt") == {"a\nb ä\ufffd.txt"}


# The private module has another name since Python 3.13.
INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


@pytest.mark.parametrize(
    ("program", "complete"),
    [
        ("import helper", True),
        ("import subprocess; subprocess.run(['git', '--version'], capture_output=True)", True),
        ("import platform; platform.architecture()", True),
        ("import subprocess; subprocess.run([sys.executable, '-c', ''])", False),
        ("os.system('true')", False),
        ("import subprocess; subprocess.run('git --version; true', shell=True)", False),
        ("os.posix_spawn('/bin/sh', ['sh', '-c', 'true'], {})", False),
        ("os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', 'true'])", False),
        (
            "import multiprocessing\n"
            "p = multiprocessing.get_context('spawn').Process(target=print)\n"
            "p.start(); p.join()",
            False,
        ),
        (f"import {INTERPRETERS} as s; s.destroy(s.create())", False),
        ("os.fork() or os.execv('/bin/sh', ['sh', '-c', 'true'])\nos.wait()", False),
    ],
)
def test_programs__whose_files_nobody_sees(root: Path, program: str, complete: bool) -> None:
    (root / "helper.py").write_text("x = 1\n")

    assert traced(root, program).is_complete is complete


# ------------------------------------------------------------------------------ the reading end


def read(*data: bytes) -> SandboxedTraceReader:
    found = SandboxedTraceReader()
    for piece in data:
        found.feed_bytes(piece)
    return found


def test_reader__without_a_word_knows_nothing() -> None:
    assert not read().is_complete
    assert not read(b"f/a\0").is_complete
    assert read(b"h\0").is_complete


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_reader__whatever_comes__keeps_what_it_knows(garbage: list[bytes]) -> None:
    found = read(b"h\0f/first\0", *garbage)

    assert b"/first" in found.paths


@given(st.integers(1, 7))
def test_reader__whatever_the_reads(size: int) -> None:
    data = b"h\0f/a/b\0f/c\0pgit\0"
    found = read(*(data[at : at + size] for at in range(0, len(data), size)))

    assert found.paths == {b"/a/b", b"/c"}
    assert found.is_complete


@pytest.mark.parametrize("data", [b"x/a\0", b"f\0", b"frelative\0", b"\0", b"f/a" * 10_000])
def test_reader__garbage_means_that_nothing_is_known(data: bytes) -> None:
    assert not read(b"h\0f/first\0", data).is_complete


def test_reader__a_flood_ends_what_is_known_and_not_the_reading() -> None:
    found = read(b"h\0f/first\0")
    for _ in range(600):
        found.feed_bytes(b"f/a\0" * 1_000)

    assert not found.is_complete
    assert found.paths == {b"/first", b"/a"}


def test_reader__a_flood_takes_no_memory() -> None:
    found = read(b"h\0")
    for number in range(900):
        found.feed_bytes(b"".join(b"f/%d/%d%s\0" % (number, n, b"x" * 80) for n in range(1_000)))

    assert not found.is_complete
    assert len(found.paths) <= 600_000


# -------------------------------------------------------------------- the changed files among it


def among(changed: list[str], *paths: str, root: Path) -> set[str]:
    copy = root / "copy"
    found = read(*(b"f" + os.fsencode(path) + b"\0" for path in paths))
    return set(list_files_opened_in_sandbox(changed, [found], roots=(copy, root), checkout=root))


def test_among__of_the_copy_and_of_the_original(root: Path) -> None:
    assert among(["a.py", "b.py", "c.py"], f"{root}/copy/a.py", f"{root}/b.py", root=root) == {
        "a.py",
        "b.py",
    }


def test_among__of_the_base_branchs_tree_is_nothing(root: Path) -> None:
    elsewhere = root.parent / "base"

    assert among(["a.py"], f"{elsewhere}/a.py", root=root) == set()


def test_among__a_submodule_is_what_lies_in_it(root: Path) -> None:
    assert among(["vendor/lib", "vendor"], f"{root}/vendor/lib/x.py", root=root) == {
        "vendor/lib",
        "vendor",
    }
    assert among(["vendor/li"], f"{root}/vendor/lib/x.py", root=root) == set()


def test_among__a_changed_link_on_the_way__of_which_the_copy_knows_nothing(root: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "c.py").touch()
    (root / "deep" / "b.py").symlink_to("c.py")
    (root / "a.py").symlink_to("deep/b.py")
    (root / "out.py").symlink_to("/etc/hosts")
    (root / "loop.py").symlink_to("loop.py")

    changed = ["deep/b.py", "out.py", "loop.py"]
    assert among(changed, f"{root}/copy/a.py", root=root) == {"deep/b.py"}
    assert among(changed, f"{root}/copy/deep/c.py", root=root) == set()
    assert among(changed, f"{root}/copy/out.py", root=root) == {"out.py"}
