#!/usr/bin/env bash
set -euo pipefail
cd /app
sqlmesh run prod
sqlmesh janitor
