"""Builds the image of this checkout and prints its name: `python -m tests.container.build`.

Whoever runs several groups of tests builds it once before them and names it in CI_BOT_TEST_IMAGE.
Exit 3 where no container engine answers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from .engine import EngineMissingError, build_secrets, find_engine
from .fixtures import ROOT, TAG


def main() -> int:
    try:
        engine = find_engine(os.environ)
    except EngineMissingError as missing:
        print(missing, file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="ci-bot-build-") as scratch:
        engine.build(ROOT, TAG, build_secrets(os.environ, Path(scratch)))
    print(TAG)
    return 0


if __name__ == "__main__":
    sys.exit(main())
