"""Writes the parts and their hashes: `python -m tests.webpage_parts`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.webpage_parts import SUMS, VENDOR, build, sums

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        texts = build(Path(home))
    for name, text in texts.items():
        (VENDOR / name).write_text(text, encoding="utf-8")
    SUMS.write_text(sums(texts), encoding="utf-8")
    print(SUMS.read_text("utf-8"), end="")
