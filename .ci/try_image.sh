#!/usr/bin/env bash
#
# Whether an image of this action is what it says it is, and does something:
#
#   .ci/try_image.sh IMAGE VERSION
#
# Pulls it where it is not there, asks for its version, has it print a schema, loads what the worker
# needs, starts Spark where it has one, and gives it an event of GitHub's that needs nothing. Exit 1
# with a sentence otherwise.
set -euo pipefail

# None of it needs a network, so none is given.
image=$1
version=$2
work=$(mktemp -d)
pulled=
# An image that was not there before does not stay.
trap '[ -z "$pulled" ] || docker image rm --force "$image" >/dev/null; rm -rf "$work"' EXIT

fail() {
  echo "::error::$1"
  exit 1
}

# By its digest it is what a registry has, for this machine's architecture.
if [[ "$image" == *@sha256:* ]] || ! docker image inspect "$image" >/dev/null 2>&1; then
  docker pull --quiet "$image" >/dev/null ||
    fail "$image cannot be pulled without logging in. Make the package public, then start this job again."
  pulled=1
fi
said=$(docker run --rm --network none "$image" --version) || fail "The image does not start."
[ "$said" = "ci-bot, version $version" ] || fail "The image says: $said; expected is version $version."
schema=$(docker run --rm --network none "$image" schema report) || fail "The image prints no schema."
[[ "$schema" == *'"$schema"'* ]] || fail "The image prints no schema."
docker run --rm --network none --entrypoint /opt/ci-bot/bin/python "$image" -c 'import sqlmesh, pyspark' ||
  fail "The image cannot load SQLMesh and PySpark."
# The image for reviews has no Java.
docker run --rm --network none --env SPARK_LOCAL_IP=127.0.0.1 --entrypoint /opt/ci-bot/bin/python "$image" -c '
import os, sys
if "JAVA_HOME" in os.environ:
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    sys.exit(spark.range(3).count() != 3)
' || fail "Spark does not start in the image."
architecture=$(docker run --rm --network none --entrypoint uname "$image" -m)
cat >"$work/event.json" <<'EVENT'
{"action": "labeled", "number": 1, "repository": {"full_name": "octo/shop", "default_branch": "main"},
 "pull_request": {"number": 1, "state": "open", "draft": false, "user": {"login": "octo", "type": "User"},
  "head": {"ref": "work", "sha": "1111111111111111111111111111111111111111", "repo": {"full_name": "octo/shop"}},
  "base": {"ref": "main", "sha": "2222222222222222222222222222222222222222", "repo": {"full_name": "octo/shop"}}}}
EVENT
touch "$work/output" "$work/summary"
docker run --rm --network none --volume "$work:/github/workspace" --workdir /github/workspace \
  --env GITHUB_ACTIONS=true --env GITHUB_EVENT_NAME=pull_request \
  --env GITHUB_EVENT_PATH=/github/workspace/event.json --env GITHUB_REPOSITORY=octo/shop \
  --env GITHUB_WORKSPACE=/github/workspace --env GITHUB_OUTPUT=/github/workspace/output \
  --env GITHUB_STEP_SUMMARY=/github/workspace/summary --env GITHUB_RUN_ID=1 \
  --env CI_BOT_GITHUB_TOKEN=none "$image" run ||
  fail "The image does not end well on an event that needs nothing."
echo "$image is version $version for $architecture, and runs"
