"""What is large goes back to the system when it is gone, whatever was freed before."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Frees a block of 4 MB, which raises the bound where it moves; then one of 3 MB below a small one.
STORY = """
import ctypes, sys
from ci_bot.bot.cli.command_line import return_large_memory_after_command
if sys.argv[1] == "kept":
    assert return_large_memory_after_command()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def taken():
    block = libc.malloc(3 << 20)
    ctypes.memset(block, 1, 3 << 20)
    return block

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

libc.free(libc.malloc(4 << 20))
blocks = [(taken(), libc.malloc(2000)) for _ in range(4)]
before = resident()
for large, _ in blocks[:3]:
    libc.free(large)
print((before - resident()) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is the GNU C library's")
def test_large_blocks__go_back_at_once() -> None:
    def given_back(how: str) -> int:
        told = subprocess.run(
            [sys.executable, "-c", STORY, how], capture_output=True, text=True, check=True
        )
        return int(told.stdout)

    assert given_back("kept") >= 8
    assert given_back("as it is") < given_back("kept"), "the setting is not needed any more"
