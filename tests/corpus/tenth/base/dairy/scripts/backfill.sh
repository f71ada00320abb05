#!/usr/bin/env bash
# Builds payments of a month again: scripts/backfill.sh 2024-05-01 2024-05-31
set -euo pipefail
sqlmesh plan prod --restate-model mart.payments --start "$1" --end "$2" --no-prompts --auto-apply
