#!/usr/bin/env python3
"""`gh` that answers the three questions of deploy.yml about one pull request, and no other.

GH_MERGED: the commit that it became; GH_HEAD: its own last one; GH_REPORT: the report of its review.
Its number is 7. Another commit is of no pull request.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

merged, head, report = (os.environ[name] for name in ("GH_MERGED", "GH_HEAD", "GH_REPORT"))
words = sys.argv[1:]
if words[0] == "api":
    assert words[1].startswith(f"repos/{os.environ['GITHUB_REPOSITORY']}/commits/"), words
    assert words[1].endswith("/pulls"), words
    print(f"7 {head}" if words[1].split("/")[-2] == merged else "")
elif words[:2] == ["run", "list"]:
    assert words[words.index("--workflow") + 1] == "review.yml", words
    print("17" if words[words.index("--commit") + 1] == head else "")
else:
    assert words[:3] == ["run", "download", "17"], words
    target = pathlib.Path(words[words.index("--dir") + 1])
    target.mkdir()
    shutil.copy(report, target / "report.json")
