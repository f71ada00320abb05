#!/usr/bin/env bash
# Called by cron on the batch host at 04:15.
set -euo pipefail
cd "$(dirname "$0")/.."
sqlmesh run
