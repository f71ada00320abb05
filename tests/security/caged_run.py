"""`ci-bot run` with the worker under a user of its own, as in the container: UID GID PYTHON."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from ci_bot.bot.handlers.run_action import CREDENTIALS, run_action_in_workflow
from ci_bot.bot.sandbox.process_secrecy import keep_secrets_of_action
from ci_bot.host import ContainerUser, make_process_machine

if __name__ == "__main__":
    uid, gid, python = sys.argv[1:]
    user = ContainerUser(uid=int(uid), gid=int(gid), java_home="/nonexistent")
    around = replace(make_process_machine(), worker_user=user, python=python)
    keep_secrets_of_action(os.environ, CREDENTIALS)
    sys.exit(run_action_in_workflow(around, starts_early=True))
