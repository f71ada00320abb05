#!/usr/bin/env bash
# A container engine for machines that have none, and a Debian base image for machines that
# cannot reach a container registry.
#
#   export DOCKER_HOST=$(.ci/engine.sh start [DIR])     prints the engine's address, nothing else
#   .ci/engine.sh status [DIR]                          exit 0 and the address while it answers
#   .ci/engine.sh stop [DIR]                            ends the engine that `start` started
#   .ci/engine.sh arm64 [DIR]                           lets a started engine build and run images for arm64
#
# DIR (or CI_BOT_ENGINE_DIR) keeps images, layers and the log, so that a second start costs a
# second; default: ${TMPDIR:-/tmp}/ci-engine. Removing DIR after `stop` removes everything.
# An engine that already answers is used as it is: nothing is started, installed or imported.
#
# Settings, all optional:
#   DEBIAN_MIRROR       where debootstrap reads from; default: the mirror apt uses on this machine
#   CI_BOT_LOCAL_BASE   name of the imported base image; default: ci-bot-base:bookworm; for arm64 that
#                       name and -arm64
#
# Needs Debian or Ubuntu and root, but only when there is no engine yet. Every step is skipped
# when its result is already there, so `start` may be called any number of times.
set -euo pipefail

readonly command=${1:-start}
readonly dir=${2:-${CI_BOT_ENGINE_DIR:-${TMPDIR:-/tmp}/ci-engine}}
readonly host=unix://$dir/docker.sock
readonly base=${CI_BOT_LOCAL_BASE:-ci-bot-base:bookworm}
readonly start_seconds=60

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

answers() { docker --host "$1" version >/dev/null 2>&1; }

ours_runs() { [ -S "$dir/docker.sock" ] && answers "$host"; }

# The engine somebody else runs: DOCKER_HOST if set, else the usual socket.
foreign_host() {
  local candidate=${DOCKER_HOST:-unix:///var/run/docker.sock}
  [ "$candidate" != "$host" ] && command -v docker >/dev/null && answers "$candidate" &&
    printf '%s\n' "$candidate"
}

# install_packages PROGRAM PACKAGE [PROGRAM PACKAGE ...]: each package whose program is not there.
install_packages() {
  local missing=()
  while [ "$#" -gt 0 ]; do
    command -v "$1" >/dev/null || missing+=("$2")
    shift 2
  done
  [ "${#missing[@]}" -eq 0 ] && return
  [ "$(id -u)" -eq 0 ] || die "missing ${missing[*]}; run as root once, or install them yourself"
  say "installing ${missing[*]}"
  apt-get -qq update >&2
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    "${missing[@]}" >&2
}

start_engine() {
  ours_runs && return
  [ "$(id -u)" -eq 0 ] || die "starting an engine needs root; set DOCKER_HOST to one that runs"
  # A pid file of a dead engine keeps the next one from starting.
  rm -f "$dir/docker.pid" "$dir/docker.sock"
  # No bridge and no packet filter: many build machines lack both, and host networking is what
  # the tests use anyway. setsid: a Ctrl-C meant for the caller does not reach the engine.
  # The parser of this list is dockerd's own: https://docs.docker.com/reference/cli/dockerd/
  setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/docker.pid" \
    --host "$host" --storage-driver overlay2 \
    --bridge=none --iptables=false --ip6tables=false >"$dir/dockerd.log" 2>&1 </dev/null &
  local waited
  for ((waited = 0; waited < start_seconds * 5; waited++)); do
    answers "$host" && return
    sleep 0.2
  done
  tail -n 20 "$dir/dockerd.log" >&2
  die "the engine did not answer within $start_seconds s; its log is $dir/dockerd.log"
}

# The Debian repositories this machine itself uses for bookworm, one "URI suite" per line.
# Reading them from apt keeps mirrors and proxies working without naming any here.
debian_sources() {
  # apt expands the $(...) fields itself; the shell must not.
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $3 ~ /^bookworm/ && !seen[$2 $3]++ { print $2, $3 }'
}

# import_base ARCHITECTURE NAME
import_base() {
  local architecture=$1 name=$2
  docker --host "$host" image inspect "$name" >/dev/null 2>&1 && return
  local root=$dir/rootfs mirror sources
  sources=$(debian_sources)
  mirror=${DEBIAN_MIRROR:-$(awk '$2 == "bookworm" { print $1; exit }' <<<"$sources")}
  say "building a bookworm base image for $architecture (about half a minute)"
  rm -rf "$root" "$root.context"
  # Without a mirror debootstrap takes its own default.
  debootstrap --arch="$architecture" --variant=minbase bookworm "$root" ${mirror:+"$mirror"} \
    >"$dir/debootstrap.log" 2>&1 ||
    { tail -n 20 "$dir/debootstrap.log" >&2; die "debootstrap failed; set DEBIAN_MIRROR"; }
  # Security and point-release suites come from the same place as this machine's own.
  if [ -n "$sources" ] && [ -z "${DEBIAN_MIRROR:-}" ]; then
    awk '{ print "deb", $1, $2, "main" }' <<<"$sources" >"$root/etc/apt/sources.list"
  fi
  # What makes the official image "slim": no documentation, no translations, also not later.
  printf 'path-exclude %s\n' '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/info/*' \
    '/usr/share/locale/*' '/usr/share/lintian/*' >"$root/etc/dpkg/dpkg.cfg.d/slim"
  rm -rf "$root"/usr/share/{doc,man,info,locale,lintian}/* "$root"/var/cache/apt/*.bin \
    "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
  # Not `docker import`, which says of every image that it is this machine's architecture.
  mkdir "$root.context"
  tar -C "$root" -cf "$root.context/rootfs.tar" .
  printf 'FROM scratch\nADD rootfs.tar /\nCMD ["bash"]\n' >"$root.context/Dockerfile"
  # The old builder is in every client, BuildKit in none from 23 on.
  DOCKER_BUILDKIT=0 docker --host "$host" build --quiet --platform "linux/$architecture" \
    --tag "$name" "$root.context" >/dev/null
  rm -rf "$root" "$root.context"
}

start() {
  local running
  if running=$(foreign_host); then
    say "using the engine at $running"
    printf '%s\n' "$running"
    return
  fi
  mkdir -p "$dir"
  install_packages dockerd docker.io debootstrap debootstrap
  start_engine
  import_base "$(dpkg --print-architecture)" "$base"
  printf '%s\n' "$host"
}

# The kernel hands programs of that architecture to QEMU, in containers, too.
arm64() {
  if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
    install_packages update-binfmts binfmt-support qemu-aarch64-static qemu-user-static
    mountpoint --quiet /proc/sys/fs/binfmt_misc ||
      mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    update-binfmts --enable
  fi
  # Another engine has a registry, whose base images have both architectures.
  if ours_runs; then import_base arm64 "$base-arm64"; fi
}

stop() {
  [ -f "$dir/docker.pid" ] || { say "nothing runs in $dir"; return; }
  local pid
  pid=$(<"$dir/docker.pid")
  # A pid file can outlive its process, and the number may belong to somebody else by now.
  if grep -qs "$dir/docker.pid" "/proc/$pid/cmdline"; then
    kill "$pid"
    while [ -d "/proc/$pid" ]; do sleep 0.2; done
  fi
  rm -f "$dir/docker.pid" "$dir/docker.sock"
  # The engine leaves a network namespace mounted, and DIR could not be removed.
  awk -v below="$dir/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | sort -r |
    while read -r mounted; do umount "$mounted"; done
  say "stopped"
}

case $command in
  start) start ;;
  stop) stop ;;
  arm64) arm64 ;;
  status) ours_runs && printf '%s\n' "$host" ;;
  *) die "unknown command '$command'; say start, stop, status or arm64" ;;
esac
