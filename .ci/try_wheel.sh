#!/usr/bin/env bash
#
# Whether a wheel of this program installs beside a project's own SQLMesh, keeps it, and works:
#
#   .ci/try_wheel.sh WHEEL VERSION SQLMESH [PYTHON]
#
# In an environment that is made and removed. Exit 1 with a sentence otherwise.
set -euo pipefail
wheel=$(realpath "$1")
version=$2
sqlmesh=$3
python=${4:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "::error::$1"
  exit 1
}

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
"$python" -m venv "$work/env"
bin=$work/env/bin
# A team's environment first, then the wheel, as its users do it.
"$bin/python" -m pip install --quiet --prefer-binary "sqlmesh==$sqlmesh"
"$bin/python" -m pip install --quiet --prefer-binary "$wheel"
"$bin/python" -m pip check >/dev/null || fail "The wheel's needs do not fit what is installed."
kept=$("$bin/python" -c 'import importlib.metadata as m; print(m.version("sqlmesh"))')
[ "$kept" = "$sqlmesh" ] || fail "The wheel brought SQLMesh $kept in place of $sqlmesh."
if "$bin/python" -c 'import pyspark' 2>/dev/null; then fail "The wheel brought PySpark."; fi
said=$("$bin/ci-bot" --version)
[ "$said" = "ci-bot, version $version" ] || fail "The wheel says: $said; expected is version $version."

# A project of two models, one of which a branch changes.
project=$work/project
mkdir -p "$project/models"
cat >"$project/config.yaml" <<'CONFIG'
gateways:
  local:
    connection: {type: duckdb, database: db.duckdb}
default_gateway: local
model_defaults: {dialect: duckdb, start: 2024-01-01}
CONFIG
printf 'MODEL (name shop.orders, kind FULL);\nSELECT 1 AS id, 2.5 AS price\n' >"$project/models/orders.sql"
printf 'MODEL (name shop.totals, kind FULL);\nSELECT SUM(price) AS total FROM shop.orders\n' >"$project/models/totals.sql"
cd "$project"
git init --quiet --initial-branch main .
commit() { git -c user.name=x -c user.email=x@example.org commit --quiet --all --message "$1"; }
git add . && commit base
git checkout --quiet -b work
sed -i 's/2.5 AS price/3.5 AS price/' models/orders.sql
commit work
code=0
HOME=$work "$bin/ci-bot" review --baseline base-branch --base-ref main --format json >"$work/report.json" 2>"$work/log" || code=$?
"$bin/python" - "$work/report.json" <<'READ' || { tail -5 "$work/log"; fail "The review has no report of both models (exit $code)."; }
import json, sys
text = open(sys.argv[1]).read()
report = json.loads(text)
sys.exit(0 if "shop.orders" in text and "shop.totals" in text and report["decision"] else 1)
READ
HOME=$work "$bin/ci-bot" init --level review --dry-run >"$work/init" || fail "ci-bot init --dry-run fails."
echo "$(basename "$wheel") is version $version beside SQLMesh $sqlmesh, and reviews"
