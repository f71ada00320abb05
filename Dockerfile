# The action's two images, in stages:
#   system   what Debian provides: Python, git, the worker's account
#   java     + Java 17
#   python   + pip: the virtual environment, from hash-locked wheels, without what nobody needs
#   spark    + Java, and a class-data archive, so that Spark starts in half the time
#   package  this repository's own code
#   small    system without Perl, which Debian's own scripts need
#   review   small, in one layer + the finished virtual environment, of Spark only its Python
#   (last)   java + the finished virtual environment; no pip, no compiler, no cache
# The last one does everything. `--target review` has a third of its size, and does what needs no
# Spark: reviews, commands, comments for forks.
#
# Another Python (3.10 to 3.13) needs a base image that has it, on bookworm:
#   docker build --build-arg PYTHON_VERSION=3.12 --build-arg BASE_IMAGE=python:3.12-slim-bookworm .
# `--build-arg KEEP_MLLIB=true` keeps what `pyspark.ml` runs on.
#
# A machine without a container registry brings its own bookworm (see .ci/engine.sh):
#   docker build --build-arg BASE_IMAGE=ci-bot-base:bookworm .
# A machine behind its own certificate authority or package index hands both in as build secrets,
# which exist during one command and reach no layer:
#   docker build --secret id=ca,src=/path/ca-bundle.crt --secret id=pip_conf,src=/path/pip.conf .

# debian:bookworm-slim, image index of 2026-08-03 (amd64, arm64 and more). Source of the digest:
# docker-library/repo-info, repos/debian/remote/bookworm-slim.md at commit
# 05f354f0a08a211fdfed2f21845d1fccd389921d; public Dockerfiles pin the same one.
ARG PYTHON_VERSION=3.11
ARG BASE_IMAGE=debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241

# ----------------------------------------------------------------------------------------------
FROM ${BASE_IMAGE} AS system

# A base image without that Python gets Debian's, which is 3.11. Pinned to the release line, open to
# Debian's security fixes within it: the archive keeps only the newest build of a stable release, so
# an exact pin would stop building with the next fix.
# ca-certificates are Debian's own; nothing of the building machine goes in here.
# Set-uid programs are of no use in here, and the worker must not find any. Nor is Perl, which git
# needs to send mail and for Subversion; Debian's own scripts have theirs in perl-base. Nor are the
# programs of git that serve, mail or push without git's own protocol, of 2 MB each.
# An account's date of today would make each day's image another one.
ARG PYTHON_VERSION
RUN apt-get update \
    && if ! command -v "python$PYTHON_VERSION" >/dev/null; then \
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
            python3="$PYTHON_VERSION.*" \
        || { echo "The base image has no Python $PYTHON_VERSION: name one by BASE_IMAGE."; exit 1; }; \
    fi \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates=2023* \
        git=1:2.39.* \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/log/apt /var/log/*.log \
    && rm -rf /usr/share/perl /usr/share/perl5/Git* /usr/lib/*-linux-gnu/perl \
        /usr/lib/*-linux-gnu/libperl.so.* /usr/share/gitweb /usr/share/bash-completion \
    && for name in git-daemon git-http-backend git-http-fetch git-http-push git-imap-send \
            git-remote-ftp git-remote-ftps git-sh-i18n--envsubst git-shell scalar; do \
        rm "/usr/lib/git-core/$name" || exit 1; \
    done \
    && rm /usr/bin/git-shell /usr/bin/scalar \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && groupadd --gid 10001 worker \
    && SOURCE_DATE_EPOCH=86400 useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin worker

# ----------------------------------------------------------------------------------------------
FROM system AS java

# ct.sym is for compilers, and the archive for heaps above 32 GB is not the one that Spark takes.
# man1: the JRE's installer puts a link there, and the slim image has no manual pages
# (https://bugs.debian.org/863199).
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        openjdk-17-jre-headless=17.* \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/log/apt /var/log/*.log \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /opt/java \
    && rm /opt/java/lib/ct.sym /opt/java/lib/server/classes_nocoops.jsa

# ----------------------------------------------------------------------------------------------
FROM system AS python

# Debian's Python has its `venv` apart.
ARG PYTHON_VERSION
RUN if ! "python$PYTHON_VERSION" -c 'import ensurepip' 2>/dev/null; then \
        apt-get update \
        && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
            python3-venv="$PYTHON_VERSION.*" \
        && rm -rf /var/lib/apt/lists/*; \
    fi

# The date of what wheels are made of, whose hashes pip writes down: the same in each build.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_NO_CACHE_DIR=1 SOURCE_DATE_EPOCH=315532800

# Wheels only, every one by hash. pyspark is published as source, without anything to compile;
# it is built by the locked setuptools of /build, not by one that pip would fetch unchecked.
COPY requirements.lock /src/locks/python-3.11.lock
COPY .ci/image/locks /src/locks
COPY .ci/image/requirements-build.lock /src/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip_conf \
    set -e; \
    if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    if [ -f /run/secrets/pip_conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip_conf; fi; \
    "python$PYTHON_VERSION" -m venv /build; \
    /build/bin/pip install --require-hashes --only-binary :all: -r /src/requirements-build.lock; \
    /build/bin/pip wheel --no-deps --require-hashes --no-build-isolation \
        --only-binary :all: --no-binary pyspark --wheel-dir /wheels \
        -r "/src/locks/python-$PYTHON_VERSION.lock"; \
    "python$PYTHON_VERSION" -m venv --without-pip /opt/ci-bot; \
    /build/bin/pip --python /opt/ci-bot/bin/python install --no-deps --no-index --no-compile /wheels/*.whl; \
    rm -rf /wheels

# What a call of SQLMesh's Python API imports has to be left by slim.py; byte_code.py imports it.
COPY .ci/image/slim.py .ci/image/byte_code.py /src/
RUN /opt/ci-bot/bin/python /src/slim.py packages \
    && /opt/ci-bot/bin/python -B /src/byte_code.py

# ----------------------------------------------------------------------------------------------
FROM python AS without-spark

RUN /opt/ci-bot/bin/python /src/slim.py spark

# ----------------------------------------------------------------------------------------------
FROM java AS spark

COPY --from=python /opt/ci-bot /opt/ci-bot
COPY .ci/image /src/image
ARG KEEP_MLLIB=false
RUN if [ "$KEEP_MLLIB" = true ]; then set -- --keep-mllib; fi; \
    /opt/ci-bot/bin/python /src/image/slim.py jars "$@" \
    && /opt/ci-bot/bin/python /src/image/prepare_spark.py

# ----------------------------------------------------------------------------------------------
# Our own package last, in a tree of its own: a change of it alone is a small layer. The JSON file
# tells ci-bot that it is in this image, whom the worker runs as, and whether there is a Java; a
# variable could be set by anybody's workflow.
FROM python AS package

COPY pyproject.toml README.md LICENSE /src/
COPY ci_bot /src/ci_bot
COPY templates /src/templates
COPY examples /src/examples
COPY docs/rules /src/docs/rules
RUN /build/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheels /src \
    && /build/bin/pip --python /opt/ci-bot/bin/python install --no-deps --no-index --no-compile \
        --root /package /wheels/*.whl \
    && /opt/ci-bot/bin/python -m compileall -q --invalidation-mode unchecked-hash \
        -s /package -p / /package/opt/ci-bot/lib \
    && mkdir -p /container/full /container/review \
    && echo '{"uid": 10001, "gid": 10001, "java_home": "/opt/java"}' \
        > /container/full/ci-bot-container.json \
    && echo '{"uid": 10001, "gid": 10001, "java_home": null}' \
        > /container/review/ci-bot-container.json

# ----------------------------------------------------------------------------------------------
FROM system AS small

# Each file costs whoever pulls, so what the base image has for others goes: Perl, with what dpkg
# knows of it, and the time zones in the two ways of counting that nobody asks for.
RUN dpkg --purge --force-depends --force-remove-essential \
        liberror-perl libperl5.36 perl perl-base perl-modules-5.36 \
    && rm -rf /usr/share/perl* /usr/share/zoneinfo/posix /usr/share/zoneinfo/right \
        /var/cache/ldconfig/* /var/log/*.log \
    && git --version

# ----------------------------------------------------------------------------------------------
FROM scratch AS review

# Of one layer, because what a later one removes is pulled all the same.
# hadolint ignore=DL3067
COPY --from=small / /

LABEL org.opencontainers.image.title="sqlmesh-plan-review/review" \
      org.opencontainers.image.description="Plan reviews for SQLMesh projects, without Spark" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=without-spark /opt/ci-bot /opt/ci-bot
COPY --from=package /package/opt/ci-bot /opt/ci-bot
COPY --from=package /container/review /opt/ci-bot

# For the worker. The entry point's own interpreter ignores PYTHON* variables (-I), so
# what a workflow sets there cannot reach it.
ENV PATH=/opt/ci-bot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 \
    PYTHONUTF8=1 \
    PYTHONDONTWRITEBYTECODE=1

# GitHub requires the entry process of a container action to be root: it mounts the workspace and
# the output files for that account
# (https://docs.github.com/en/actions/reference/workflows-and-actions/dockerfile-support).
# It starts everything that loads a project as `worker` (uid 10001, no new privileges), and refuses
# to go on where that is impossible.
# hadolint ignore=DL3002
USER 0:0

# Exec form: signals reach Python itself, which is process 1 and handles them. The interpreter by
# its full path and isolated (-I): PATH, PYTHONPATH or PYTHONHOME of a workflow change nothing.
ENTRYPOINT ["/opt/ci-bot/bin/python", "-I", "-X", "utf8", "-m", "ci_bot"]
CMD ["run"]

# ----------------------------------------------------------------------------------------------
FROM java

LABEL org.opencontainers.image.title="sqlmesh-plan-review" \
      org.opencontainers.image.description="Plan reviews and PR environments for SQLMesh projects on Spark" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=spark /opt/ci-bot /opt/ci-bot
COPY --from=package /package/opt/ci-bot /opt/ci-bot
COPY --from=package /container/full /opt/ci-bot

# As above.
ENV PATH=/opt/ci-bot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 \
    PYTHONUTF8=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    JAVA_HOME=/opt/java

# As above: GitHub requires it.
# hadolint ignore=DL3002
USER 0:0

ENTRYPOINT ["/opt/ci-bot/bin/python", "-I", "-X", "utf8", "-m", "ci_bot"]
CMD ["run"]
