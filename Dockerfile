# The action's image, in stages:
#   system   what Debian provides: Python 3.11, Java 17, git, the worker's account
#   python   + pip: the virtual environment, from hash-locked wheels
#   spark    + a class-data archive, so that Spark starts in half the time
#   package  this repository's own code
#   (last)   system + the finished virtual environment; no pip, no compiler, no cache
#
# A machine without a container registry brings its own bookworm (see .ci/engine.sh):
#   docker build --build-arg BASE_IMAGE=ci-bot-base:bookworm .
# A machine behind its own certificate authority or package index hands both in as build secrets,
# which exist during one command and reach no layer:
#   docker build --secret id=ca,src=/path/ca-bundle.crt --secret id=pip_conf,src=/path/pip.conf .

# debian:bookworm-slim, image index of 2026-08-03 (amd64, arm64 and more). Source of the digest:
# docker-library/repo-info, repos/debian/remote/bookworm-slim.md at commit
# 05f354f0a08a211fdfed2f21845d1fccd389921d; public Dockerfiles pin the same one.
ARG BASE_IMAGE=debian:bookworm-slim@sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241

# ----------------------------------------------------------------------------------------------
FROM ${BASE_IMAGE} AS system

# Pinned to the release line, open to Debian's security fixes within it: the archive keeps only
# the newest build of a stable release, so an exact pin would stop building with the next fix.
# ca-certificates are Debian's own; nothing of the building machine goes in here.
# Set-uid programs are of no use in here, and the worker must not find any.
# man1: the JRE's installer puts a link there, and the slim image has no manual pages
# (https://bugs.debian.org/863199).
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        ca-certificates=2023* \
        git=1:2.39.* \
        openjdk-17-jre-headless=17.* \
        python3=3.11.* \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/*.log \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && groupadd --gid 10001 worker \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin worker \
    && ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /opt/java

# ----------------------------------------------------------------------------------------------
FROM system AS python

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        python3-venv=3.11.* \
    && rm -rf /var/lib/apt/lists/*

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_NO_CACHE_DIR=1

# Wheels only, every one by hash. pyspark is published as source, without anything to compile;
# it is built by the locked setuptools of /build, not by one that pip would fetch unchecked.
COPY .ci/image/requirements-build.lock requirements.lock /src/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip_conf \
    set -e; \
    if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    if [ -f /run/secrets/pip_conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip_conf; fi; \
    python3 -m venv /build; \
    /build/bin/pip install --require-hashes --only-binary :all: -r /src/requirements-build.lock; \
    /build/bin/pip wheel --no-deps --require-hashes --no-build-isolation \
        --only-binary :all: --no-binary pyspark --wheel-dir /wheels -r /src/requirements.lock; \
    python3 -m venv --without-pip /opt/ci-bot; \
    /build/bin/pip --python /opt/ci-bot/bin/python install --no-deps --no-index --no-compile /wheels/*.whl; \
    rm -rf /wheels

# Compiled once and never checked against the source again: the image does not change, and the
# worker's account could not write the result anyway.
RUN /opt/ci-bot/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/ci-bot/lib

# ----------------------------------------------------------------------------------------------
FROM python AS spark

COPY .ci/image /src/image
RUN /opt/ci-bot/bin/python /src/image/prepare_spark.py

# ----------------------------------------------------------------------------------------------
# Our own package last, in a tree of its own: a change of it alone is a small layer. The JSON file
# tells ci-bot that it is in this image, and whom the worker runs as; a variable could be set by
# anybody's workflow.
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
    && echo '{"uid": 10001, "gid": 10001, "java_home": "/opt/java"}' \
        > /package/opt/ci-bot/ci-bot-container.json

# ----------------------------------------------------------------------------------------------
FROM system

LABEL org.opencontainers.image.title="sqlmesh-plan-review" \
      org.opencontainers.image.description="Plan reviews and PR environments for SQLMesh projects on Spark" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=spark /opt/ci-bot /opt/ci-bot
COPY --from=package /package/opt/ci-bot /opt/ci-bot

# For the worker and its JVM. The entry point's own interpreter ignores PYTHON* variables (-I), so
# what a workflow sets there cannot reach it.
ENV PATH=/opt/ci-bot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 \
    PYTHONUTF8=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    JAVA_HOME=/opt/java

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
