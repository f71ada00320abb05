#!/usr/bin/env bash
#
# The files of a release beside its images, in a directory that is made:
#
#   .ci/package.sh DIRECTORY
#
# The wheel, the site of the documents (a warning is an error), and the hashes of both. The same commit
# gives the same bytes, on any machine and at any time. Needs .venv, as .ci/setup.sh test makes it.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1
mkdir -p "$directory"
# Files of a checkout have the time and the rights of whoever made it.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH PYTHONHASHSEED=0 TZ=UTC NO_MKDOCS_2_WARNING=1
umask 022
.venv/bin/python -m pip wheel --quiet --no-deps --no-index --no-build-isolation --no-cache-dir \
  --wheel-dir "$directory" .
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/mkdocs build --strict --quiet --site-dir "$work/site"
# The one file that a build writes the time into, beside the map itself.
find "$work/site" -name 'sitemap.xml.gz' -delete
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --directory "$work" site | gzip --no-name --best >"$directory/site.tar.gz"
cd "$directory"
sha256sum ./*.whl site.tar.gz | sed 's# \./# #' >SHA256SUMS
cat SHA256SUMS
