"""`ci-bot run` with the worker under a user of its own, as in the container: UID GID PYTHON."""

from __future__ import annotations

import sys
from dataclasses import replace

from ci_bot.surroundings import ContainerUser, of_this_process
from ci_bot.workflow import run_workflow

if __name__ == "__main__":
    uid, gid, python = sys.argv[1:]
    user = ContainerUser(uid=int(uid), gid=int(gid), java_home="/nonexistent")
    sys.exit(run_workflow(replace(of_this_process(), worker_user=user, python=python)))
