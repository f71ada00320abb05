"""Builds both images of this checkout and prints the first one's name:
`python -m tests.container.build`.

Whoever runs several groups of tests builds it once before them and names it in CI_BOT_TEST_IMAGE.
Exit 3 where no container engine answers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from .engine import EngineMissingError, build_secrets, find_engine
from .fixtures import FOR_REVIEWS, ROOT, TAG, TARGET


def main() -> int:
    try:
        engine = find_engine(os.environ)
    except EngineMissingError as missing:
        print(missing, file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="ci-bot-build-") as scratch:
        secrets = build_secrets(os.environ, Path(scratch))
        engine.build(ROOT, TAG, secrets)
        engine.build(ROOT, TAG + FOR_REVIEWS, secrets, *TARGET)
    print(TAG)
    return 0


if __name__ == "__main__":
    sys.exit(main())
