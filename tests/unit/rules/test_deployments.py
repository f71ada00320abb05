"""What prod is built from, started by and guarded by: what is found, and what is passed over."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from ci_bot.file_patterns import read_pattern
from ci_bot.worker.rules import RuleInputs
from ci_bot.worker.rules.files.deployments import (
    find_changed_deployment_files,
    find_spark_file_settings,
    list_differences_of_gitattributes_file,
    list_differences_of_owners_file,
    list_files_excluded_from_image,
    read_spark_properties_file,
)
from tests.unit.rules.world import files

DEPLOY = """name: Deploy
on:
  push:
    branches: [main]
permissions: {contents: read}
concurrency:
  group: deploy
  cancel-in-progress: false
jobs:
  deploy:
    runs-on: ubuntu-24.04
    timeout-minutes: 120
    steps:
      - uses: actions/checkout@692973e3d937129bcbf40652eb9f2f61becf3332 # v4.1.7
      - run: make test
      - run: sqlmesh plan prod --no-prompts --auto-apply
        env:
          STATE_HOST: state.internal
"""
REVIEW = """on:
  pull_request:
    types: [opened, synchronize]
jobs:
  review:
    steps:
      - uses: acme/sqlmesh-plan-review/review@0123456789abcdef0123456789abcdef01234567
        with: {baseline: base-branch}
"""
JOB = """apiVersion: batch/v1
kind: CronJob
metadata:
  name: run
  labels: {team: a}
spec:
  schedule: "15 * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
            - name: run
              image: dairy:1.4.0
              args: ["run", "prod"]
              env:
                - name: STATE_HOST
                  value: state.internal
              resources:
                limits: {memory: 4Gi, cpu: 500m}
"""
IMAGE = """# the image of prod
FROM apache/spark:3.5.3
ENV TZ=UTC
COPY . .
CMD ["run", "prod"]
"""
TERRAFORM = """resource "aws_s3_bucket_lifecycle_configuration" "lake" {
  rule {
    id = "tmp"
    filter { prefix = "tmp/" }
    expiration { days = 3 }
  }
  tags = { team = "a" }
}
"""
SITE = """<configuration>
  <property>
    <name>hive.metastore.uris</name>
    <value>thrift://a:9083</value>
  </property>
</configuration>
"""
PACKAGES = "sqlmesh[spark]==0.236.4\npandas==2.2.3  # for models\nslack-sdk==3.33.1\n"
WORKFLOW = ".github/workflows/deploy.yml"


def sentences(path: str, before: str | None, after: str | None) -> list[str]:
    inputs = files(
        {path: before} if before is not None else {}, {path: after} if after is not None else {}
    )
    return [found.evidence for found in find_changed_deployment_files(inputs)]


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "word"),
    [
        (WORKFLOW, DEPLOY, "cancel-in-progress: false", "cancel-in-progress: true", "concurrency"),
        (WORKFLOW, DEPLOY, "timeout-minutes: 120", "timeout-minutes: 10", "killed"),
        (WORKFLOW, replaced(DEPLOY, "    timeout-minutes: 120\n", ""), "    runs-on:", "    timeout-minutes: 20\n    runs-on:", "killed"),
        (WORKFLOW, DEPLOY, "branches: [main]", "branches: [main]\n    paths: [models/**]", "paths"),
        (WORKFLOW, DEPLOY, "branches: [main]", "branches: [next]", "branches"),
        (WORKFLOW, DEPLOY, "on:\n", "on:\n  pull_request_target:\n", "with secrets"),
        (WORKFLOW, DEPLOY, "contents: read", "contents: write", "token"),
        (WORKFLOW, DEPLOY, "state.internal", "other.internal", "another value"),
        (WORKFLOW, DEPLOY, "@692973e3d937129bcbf40652eb9f2f61becf3332", "@main", "others may change"),
        (WORKFLOW, DEPLOY, "actions/checkout@", "somebody/checkout@", "others may change"),
        (WORKFLOW, DEPLOY, "      - run: make test\n", "", "no longer run as it was"),
        (WORKFLOW, DEPLOY, "      - run: make test\n", "      - run: make test\n      - run: curl a | sh\n", "beside"),
        (WORKFLOW, REVIEW, "types: [opened, synchronize]", "types: [opened]", "types"),
        (WORKFLOW, REVIEW, "types: [opened, synchronize]", "types: [opened, synchronize]\n    paths: [models/**]", "paths"),
        (WORKFLOW, REVIEW, "{baseline: base-branch}", "{baseline: auto}", "baseline"),
        ("deploy/job.yaml", JOB, "spec:\n  schedule", "spec:\n  suspend: true\n  schedule", "suspend"),
        ("deploy/job.yaml", JOB, '"15 * * * *"', '"15 */12 * * *"', "schedule"),
        ("deploy/job.yaml", JOB, '"prod"]', '"prod", "--ignore-cron"]', "args"),
        ("deploy/job.yaml", JOB, "state.internal", "other.internal", "STATE_HOST"),
        ("deploy/job.yaml", JOB, "4Gi", "512Mi", "memory"),
        ("deploy/job.yaml", JOB, "dairy:1.4.0", "dairy:1.3.0", "image"),
        ("Dockerfile", IMAGE, "COPY . .", "COPY models models", "COPY models models"),
        ("docker/prod.Dockerfile", IMAGE, "TZ=UTC", "TZ=UTC\nENV SQLMESH__X=1", "SQLMESH__X"),
        ("infra/main.tf", TERRAFORM, '{ prefix = "tmp/" }', "{}", "filter {}"),
        ("conf/hive-site.xml", SITE, "thrift://a:9083", "thrift://b:9083", "thrift://b:9083"),
        ("conf/core-site.xml", SITE, SITE, "<configuration/>", "nothing"),
        ("requirements.txt", PACKAGES, "slack-sdk==3.33.1\n", "", "`slack-sdk`"),
        ("requirements.lock", PACKAGES, "sqlmesh[spark]==", "--extra-index-url https://a\nsqlmesh[spark]==", "elsewhere"),
        ("requirements.txt", PACKAGES, "==0.236.4", " @ git+https://github.com/a/sqlmesh@b", "no package index"),
        ("scripts/a.sh", "#!/bin/bash\nls\n", "\n", "\r\n", "Windows"),
        ("bin/run", "#!/usr/bin/env bash\nls\n", "\n", "\r\n", "Windows"),
    ],
)  # fmt: skip
def test_change__that_reaches_prod__is_found(
    path: str, text: str, old: str, new: str, word: str
) -> None:
    found = sentences(path, text, replaced(text, old, new))

    assert len(found) == 1, found
    assert word in found[0]


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        (WORKFLOW, DEPLOY, "name: Deploy", "name: Deploy prod"),
        (WORKFLOW, DEPLOY, "timeout-minutes: 120", "timeout-minutes: 240"),
        (WORKFLOW, replaced(DEPLOY, "    timeout-minutes: 120\n", ""), "    runs-on:", "    timeout-minutes: 300\n    runs-on:"),
        (WORKFLOW, DEPLOY, "- run: make test", "- name: Tests\n        run: make test"),
        (WORKFLOW, DEPLOY, "state.internal", "state.internal\n          PYTHONUNBUFFERED: '1'"),
        (WORKFLOW, DEPLOY, "692973e3d937129bcbf40652eb9f2f61becf3332", "f677139bbe7f9c59b41e40162b753c062f5d49a3"),
        (WORKFLOW, DEPLOY, "on:\n", "on:\n  workflow_dispatch:\n"),
        (WORKFLOW, DEPLOY, "{contents: read}", "{}"),
        (WORKFLOW, REVIEW, "[opened, synchronize]", "[opened, synchronize, reopened]"),
        (".github/workflows/docs.yml", "on: push\njobs: {a: {steps: [{run: mkdocs build}]}}\n", "push", "release"),
        ("deploy/job.yaml", JOB, "{team: a}", "{team: b, cost: c}"),
        ("deploy/job.yaml", JOB, "4Gi", "6144Mi"),
        ("deploy/job.yaml", JOB, "500m", "1"),
        ("values.yaml", "image: a\n", "a", "b"),
        ("Dockerfile", IMAGE, "# the image of prod", "# what prod runs\nLABEL a=b"),
        ("Dockerfile", IMAGE, "COPY . .", "COPY  .   ."),
        ("infra/main.tf", TERRAFORM, '{ team = "a" }', '{ team = "b" }'),
        ("infra/main.tf", TERRAFORM, "  rule {", "  # files of jobs\n  rule {"),
        ("conf/hive-site.xml", SITE, "<configuration>", "<!-- Hive's -->\n<configuration>"),
        ("requirements.txt", PACKAGES, "  # for models", ""),
        ("requirements.txt", PACKAGES, "slack-sdk==3.33.1", "Slack_SDK==3.33.2"),
        ("requirements-dev.txt", PACKAGES, "slack-sdk==3.33.1\n", ""),
        ("notes/a.txt", "a\n", "\n", "\r\n"),
    ],
)  # fmt: skip
def test_change__that_prod_does_not_see__is_passed_over(
    path: str, text: str, old: str, new: str
) -> None:
    assert sentences(path, text, replaced(text, old, new)) == []


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        (WORKFLOW, DEPLOY, "STATE_HOST: state.internal", "STATE_PASSWORD: hunter2"),
        (WORKFLOW, DEPLOY, "state.internal", "postgresql://etl:hunter2@state/db"),
        (WORKFLOW, DEPLOY, "      - run: make test\n", "      - run: make test\n      - run: echo hunter2 > ~/.pgpass\n"),
        ("deploy/job.yaml", JOB, 'value: state.internal', "value: state.internal\n                - {name: PG_PASSWORD, value: hunter2}"),
        ("deploy/job.yaml", JOB, '"prod"]', '"prod", "--password", "hunter2"]'),
        ("deploy/job.yaml", JOB, "apiVersion: batch/v1", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {licence: hunter2}\n---\napiVersion: batch/v1"),
        ("Dockerfile", IMAGE, "COPY . .", "COPY . .\nENV DB_PASSWORD hunter2"),
        ("Dockerfile", IMAGE, "COPY . .", "COPY . .\nRUN echo hunter2 > /root/.pgpass"),
        ("Dockerfile", IMAGE, '"prod"]', '"prod", "--password", "hunter2"]'),
        ("infra/main.tf", TERRAFORM, "{ days = 3 }", '{ days = 3 }\n  secret_string = jsonencode({ "pw": "hunter2" })'),
        ("conf/hive-site.xml", SITE, "<value>thrift://a:9083</value>", "<value>a</value></property><property><name>javax.jdo.option.ConnectionPassword</name><value>hunter2</value>"),
        ("conf/hive-site.xml", SITE, "thrift://a:9083", "jdbc:postgresql://h/db?user=a&amp;password=hunter2"),
        ("requirements.txt", PACKAGES, "slack-sdk==3.33.1", "slack-sdk==3.33.1\n--extra-index-url https://hunter2@packages.internal/simple"),
        ("scripts/spark-defaults.conf", "spark.sql.ansi.enabled true\n", "true", "true\nspark.sql.catalog.lake.password hunter2"),
    ],
)  # fmt: skip
def test_deployment__shows_no_secret(path: str, text: str, old: str, new: str) -> None:
    before, after = {path: text}, {path: replaced(text, old, new)}
    # A value that was there shows as little as a new one.
    for inputs in (files(before, after), files(after, before)):
        found = [*find_changed_deployment_files(inputs), *find_spark_file_settings(inputs)]
        shown = " ".join([repr(one) for one in found])

        assert "hunter2" not in shown


def test_review__that_goes__is_said() -> None:
    (found,) = sentences(".github/workflows/review.yml", REVIEW, None)

    assert "the review of this project with it" in found


def test_new_workflow__only_with_secrets_for_strangers() -> None:
    strangers = replaced(DEPLOY, "state.internal", "${{ secrets.A }}").replace(
        "on:\n", "on:\n  pull_request_target:\n"
    )

    assert sentences(WORKFLOW, None, DEPLOY) == []
    assert len(sentences(WORKFLOW, None, strangers)) == 1


def test_templates_of_helm__are_values() -> None:
    text = replaced(JOB, "dairy:1.4.0", "{{ .Values.image }}")

    assert sentences("chart/job.yaml", text, replaced(text, "{team: a}", "{team: b}")) == []
    assert len(sentences("chart/job.yaml", text, replaced(text, ".image", ".other"))) == 1


def test_binary__that_is_there(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a.whl").write_bytes(b"PK")
    inputs = RuleInputs(
        before={}, after={}, repository=tmp_path, changed_files=("wheels/a.whl", "gone.jar")
    )

    assert [found.path for found in find_changed_deployment_files(inputs)] == ["wheels/a.whl"]


FILES = ["config.yaml", "models/a.sql", "data/a.json", "docs/a.md", "seeds/a.csv", "infra/a.tf"]


@pytest.mark.parametrize(
    ("pattern", "is_found"),
    [
        ("data", True), ("data/", True), ("/data", True), ("data/*", True), ("**/*.csv", True),
        ("*.json", False), ("docs", False), ("*.md", False), ("!data", False), ("logs", False),
        ("# data", False),
    ],
)  # fmt: skip
def test_image__that_lacks_a_file(pattern: str, is_found: bool) -> None:
    assert (
        bool(list(list_files_excluded_from_image(".git\n", f".git\n{pattern}\n", FILES)))
        is is_found
    )


def test_image__that_lacked_it_before() -> None:
    assert not list(list_files_excluded_from_image("data\n", "data\ndata/a.json\n", FILES))


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("*.csv filter=lfs diff=lfs merge=lfs -text", True),
        ("*.csv text working-tree-encoding=UTF-16", True),
        ("/seeds/** export-ignore", True),
        ("*.csv text eol=lf", False),
        ("*.parquet filter=lfs -text", False),
        ("*.csv -filter", False),
    ],
)
def test_checkout__that_holds_something_else(line: str, is_found: bool) -> None:
    assert bool(list(list_differences_of_gitattributes_file("", f"{line}\n", FILES))) is is_found


@pytest.mark.parametrize(
    ("before", "after", "asked_less"),
    [
        ("* @a\n/models/ @b\n", "/models/ @b\n* @a\n", {"@b"}),
        ("* @a\n/models/ @b\n", "* @a\n", {"@b"}),
        ("* @a\n", "* @a\n/models/ @b\n", set()),
        ("* @a\n", "* @a\n/models/\n", {"@a"}),
        ("* @a\n", "* @b\n", {"@a"}),
        ("* @a\n", "* @a @b\n", set()),
        ("* @a\n/models/ @b @c\n", "* @a\n/models/ @b\n", set()),
        ("/models/ @b # ours\n", "# a\n/models/   @b\n", set()),
    ],
)
def test_owners__who_are_asked_less(before: str, after: str, asked_less: set[str]) -> None:
    found = {one.anchor for one in list_differences_of_owners_file(before, after, FILES)}

    # Who owns nothing any more is said, whatever the lines look like.
    assert found == asked_less or (before, after, found) == (
        "* @a\n/models/ @b @c\n", "* @a\n/models/ @b\n", {"@c"}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "path", "is_met"),
    [
        ("*", "a/b.sql", True), ("*.sql", "a/b.sql", True), ("a/", "a/b.sql", True),
        ("/a", "a/b.sql", True), ("/b.sql", "a/b.sql", False), ("a/*.sql", "a/b.sql", True),
        ("a/**", "a/b/c.sql", True), ("**/c.sql", "a/b/c.sql", True), ("a/**/c.sql", "a/c.sql", True),
        ("a/**/b/*.sql", "a/b/x/b/c.sql", True), ("a/**/d", "a/b/c.sql", False), ("b", "a/b.sql", False), ("a/b.sql", "a/b.sql", True),
    ],
)  # fmt: skip
def test_pattern(pattern: str, path: str, is_met: bool) -> None:
    assert read_pattern(pattern).matches(path) is is_met


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ("spark.sql.caseSensitive false", "spark.sql.caseSensitive true", None),
        ("spark.sql.storeAssignmentPolicy=ANSI", "spark.sql.storeAssignmentPolicy=LEGACY", None),
        ("spark.sql.extensions  a.B", "", None),
        ("", "spark.sql.legacy.timeParserPolicy\tLEGACY", None),
        ("spark.sql.warehouse.dir: s3a://a", "spark.sql.warehouse.dir: s3a://b", None),
    ],
)
def test_spark_defaults__that_reach_values_or_places(
    old: str, new: str, severity: str | None
) -> None:
    path = "conf/spark-defaults.conf"
    (found,) = find_spark_file_settings(files({path: f"{old}\n"}, {path: f"{new}\n"}))

    assert (found.severity, found.spec.id) == (severity, "spark-setting-changed")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("spark.executor.memory 8g", "spark.executor.memory 16g"),
        ("spark.sql.caseSensitive   false", "# as Spark has it\nspark.sql.caseSensitive=false"),
        ("rootLogger.level = warn", "rootLogger.level = info"),
        ("#spark.sql.caseSensitive true", ""),
    ],
)
def test_spark_defaults__that_reach_neither(old: str, new: str) -> None:
    path = "conf/spark-defaults.conf"

    assert not list(find_spark_file_settings(files({path: f"{old}\n"}, {path: f"{new}\n"})))


def test_spark_properties__as_java_reads_them() -> None:
    text = "spark.a b c\nspark.b=c\nspark.c: d\n  spark.d   e \n# spark.e f\nother g\n"

    assert read_spark_properties_file(text) == {
        "spark.a": "b c", "spark.b": "c", "spark.c": "d", "spark.d": "e",
    }  # fmt: skip


PADDED = {
    "brackets": "{" * 60_000,
    "newlines": "sqlmesh plan\n" + "\n" * 60_000,
    "blanks": "tags" + " " * 60_000,
    "tags": "tags = {" * 8_000,
    "names": "sqlmesh -" * 7_000,
    "properties": "<name>" * 10_000,
    "patterns": "/a/**/b @c\n" * 6_000,
    "continued": "RUN a \\\n" * 8_000,
    "documents": "---\n" * 15_000,
}


@pytest.mark.parametrize(
    "path",
    [WORKFLOW, "a.tf", "Dockerfile", "b-site.xml", "CODEOWNERS", ".dockerignore",
     ".gitattributes", "requirements.txt", "conf/a.conf"],
)  # fmt: skip
def test_file__that_is_padded__is_read_in_a_moment(path: str) -> None:
    begun = process_time()

    for text in PADDED.values():
        sentences(path, "a\n", text)

    assert process_time() - begun < 20


GITLAB = """stages: [test, deploy]
check:
  stage: test
  script:
    - make test
deploy:
  stage: deploy
  image: python:3.11
  timeout: 3h
  resource_group: prod
  variables: {STATE_HOST: state.internal}
  rules:
    - if: $CI_COMMIT_BRANCH == "main"
  script:
    - sqlmesh plan prod --no-prompts --auto-apply
"""
AZURE = """trigger:
  branches: {include: [main]}
jobs:
  - job: deploy
    displayName: Deploy
    timeoutInMinutes: 120
    pool: {vmImage: ubuntu-24.04}
    steps:
      - script: make test
      - script: sqlmesh plan prod --no-prompts --auto-apply
        env: {STATE_HOST: state.internal}
"""
BITBUCKET = """image: python:3.11
pipelines:
  branches:
    main:
      - step:
          name: Deploy
          max-time: 120
          script:
            - sqlmesh run prod
"""
CIRCLE = """jobs:
  deploy:
    docker: [{image: cimg/python:3.11}]
    steps:
      - run: make test
      - run: sqlmesh run prod
"""
COMPOSE = """services:
  run:
    image: acme/sqlmesh:1.4
    command: ["run", "prod"]
    environment: {STATE_HOST: state.internal}
    restart: always
    deploy: {resources: {limits: {memory: 4G}}}
"""
VALUES = """image: {repository: acme/sqlmesh, tag: "1.4"}
schedule: "15 * * * *"
replicaCount: 1
resources: {limits: {memory: 4Gi}}
env: {STATE_HOST: state.internal}
"""
POETRY = """[[package]]
name = "pandas"
version = "2.2.3"
files = [
    {file = "pandas-2.2.3.tar.gz", hash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
]

[[package]]
name = "ours"
version = "1.0"
files = [{file = "ours-1.0.tar.gz", hash = "sha256:cccccccccccccccccccccccccccccccc"}]

[package.source]
type = "legacy"
url = "https://packages.acme.example/simple"
reference = "acme"
"""
UV = """version = 1

[[package]]
name = "warehouse"
version = "0.1.0"
source = { virtual = "." }

[[package]]
name = "pandas"
version = "2.2.3"
source = { registry = "https://index.acme.example/simple" }
sdist = { url = "https://files.acme.example/p.tar.gz", hash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }
"""
HASHED = "pandas==2.2.3 \\\n    --hash=sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
A, B = "a" * 32, "b" * 32
CI = ".gitlab-ci.yml"


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "word"),
    [
        (CI, GITLAB, "timeout: 3h", "timeout: 90m", "killed"),
        (CI, GITLAB, "  resource_group: prod\n", "", "resource_group"),
        (CI, GITLAB, '== "main"', '=~ /.*/', "if"),
        (CI, GITLAB, "state.internal", "other.internal", "STATE_HOST"),
        (CI, GITLAB, "python:3.11", "python:3.12", "image"),
        (CI, GITLAB, "make test", "make something", "no longer run as it was"),
        (CI, GITLAB, "    - sqlmesh", "    - curl a | sh\n    - sqlmesh", "beside"),
        (CI, GITLAB, "  stage: deploy\n", "  stage: deploy\n  when: manual\n", "when"),
        ("ci/.gitlab-ci.deploy.yml", GITLAB, "timeout: 3h", "timeout: 1h", "killed"),
        ("azure-pipelines.yml", AZURE, "[main]", "[next]", "include"),
        ("azure-pipelines.yml", AZURE, "timeoutInMinutes: 120", "timeoutInMinutes: 10", "killed"),
        ("azure-pipelines.yml", AZURE, "      - script: make test\n", "", "no longer run"),
        ("azure-pipelines.yml", AZURE, "state.internal", "other", "STATE_HOST"),
        (".azure-pipelines/prod.yml", AZURE, "ubuntu-24.04", "windows-2022", "vmImage"),
        ("bitbucket-pipelines.yml", BITBUCKET, "max-time: 120", "max-time: 5", "killed"),
        ("bitbucket-pipelines.yml", BITBUCKET, "    main:", "    '**':", "killed"),
        (".circleci/config.yml", CIRCLE, "      - run: make test\n", "", "no longer run"),
        ("docker-compose.yml", COMPOSE, "sqlmesh:1.4", "sqlmesh:1.3", "image"),
        ("compose.prod.yaml", COMPOSE, '"prod"]', '"prod", "--ignore-cron"]', "command"),
        ("docker-compose.yml", COMPOSE, "4G", "512M", "memory"),
        ("docker-compose.yml", COMPOSE, "state.internal", "other", "STATE_HOST"),
        ("helm/warehouse/values.yaml", VALUES, "15 * * * *", "15 0 * * *", "schedule"),
        ("helm/warehouse/values-prod.yaml", VALUES, '"1.4"', '"1.3"', "tag"),
        ("charts/a/values.yaml", VALUES, "4Gi", "1Gi", "memory"),
        ("poetry.lock", POETRY, "packages.acme.example", "packages.other.example", "`ours` comes from"),
        ("poetry.lock", POETRY, A, B, "other hashes"),
        ("uv.lock", UV, "index.acme.example", "index.other.example", "`pandas` comes from"),
        ("uv.lock", UV, 'registry = "https://index.acme.example/simple"', 'git = "https://git.example/p"', "git.example"),
        ("uv.lock", UV, f"sha256:{A}", f"sha256:{B}", "other hashes"),
        ("requirements.lock", HASHED, A, B, "other hashes"),
    ],
)  # fmt: skip
def test_pipeline__that_does_something_else__is_found(
    path: str, text: str, old: str, new: str, word: str
) -> None:
    found = sentences(path, text, replaced(text, old, new))

    assert found and any(word in one for one in found), found


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        (CI, GITLAB, "timeout: 3h", "timeout: 200m"),
        (CI, GITLAB, "stages: [test, deploy]", "stages: [test, build, deploy]"),
        (CI, GITLAB, "  stage: test\n", "  stage: test\n  artifacts: {paths: [a]}\n"),
        (CI, GITLAB, "stages:", "# order\nstages:"),
        (CI, "docs:\n  script: [mkdocs build]\n", "mkdocs", "sphinx"),
        (CI, GITLAB, "state.internal}", "state.internal, PYTHONUNBUFFERED: '1'}"),
        ("azure-pipelines.yml", AZURE, "displayName: Deploy", "displayName: Deploy prod"),
        ("azure-pipelines.yml", AZURE, "timeoutInMinutes: 120", "timeoutInMinutes: 240"),
        ("bitbucket-pipelines.yml", BITBUCKET, "name: Deploy", "name: Deploy prod"),
        ("docker-compose.yml", COMPOSE, "restart: always", "restart: on-failure"),
        ("docker-compose.yml", COMPOSE, "4G", "8G"),
        ("docker-compose.dev.yml", COMPOSE, "sqlmesh:1.4", "sqlmesh:1.3"),
        ("docker-compose.yml", "services: {web: {image: a}}\n", "a}}", "b}}"),
        ("helm/warehouse/values.yaml", VALUES, "replicaCount: 1", "replicaCount: 2"),
        ("helm/warehouse/values.yaml", VALUES, "4Gi", "6Gi"),
        ("conf/values.yaml", VALUES, "15 * * * *", "15 0 * * *"),
        ("poetry.lock", POETRY, 'version = "2.2.3"', 'version = "2.2.4"'),
        ("poetry.lock", POETRY, "files = [\n", f'files = [\n    {{file = "w.whl", hash = "sha256:{B}"}},\n'),
        ("uv.lock", UV, 'version = "0.1.0"', 'version = "0.2.0"'),
        ("requirements.lock", HASHED.replace("2.2.3", "2.2.4"), f"2.2.4 \\\n    --hash=sha256:{A}", f"2.2.5 \\\n    --hash=sha256:{B}"),
    ],
)  # fmt: skip
def test_pipeline__that_does_the_same__is_passed_over(
    path: str, text: str, old: str, new: str
) -> None:
    assert sentences(path, text, replaced(text, old, new)) == []


def test_values_of_helm__beside_a_chart(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "Chart.yaml").write_text("name: a\n")
    path = "deploy/envs/values.yaml"
    after = replaced(VALUES, '"1.4"', '"1.3"')
    inputs = RuleInputs(
        before={},
        after={},
        repository=tmp_path,
        changed_files=(path,),
        files_before=lambda _: VALUES.encode(),
        files_after=lambda _: after.encode(),
    )
    assert len(list(find_changed_deployment_files(inputs))) == 1
    (tmp_path / "deploy" / "Chart.yaml").unlink()
    assert list(find_changed_deployment_files(inputs)) == []


def test_lock__with_a_new_package_from_elsewhere() -> None:
    more = (
        '\n[[package]]\nname = "new"\nversion = "1"\nsource = { git = "https://g.example/new" }\n'
    )
    usual = more.replace(
        'git = "https://g.example/new"', 'registry = "https://index.acme.example/simple"'
    )
    assert len(sentences("uv.lock", UV, UV + more)) == 1
    assert sentences("uv.lock", UV, UV + usual) == []


@pytest.mark.parametrize(
    "path", [CI, "azure-pipelines.yml", "docker-compose.yml", "charts/values.yaml", "uv.lock"]
)
def test_pipeline__shows_no_secret_and_takes_no_time(path: str) -> None:
    secret = 'a: {{script: [sqlmesh run], STATE_PASSWORD: {0}}}\n[[package]]\nname = "a"\n'
    shown = " ".join(sentences(path, secret.format("one"), secret.format("hunter2")))
    assert "hunter2" not in shown
    begun = process_time()
    for text in (*PADDED.values(), "[[package]]\n" * 9_000, "sqlmesh " + "1h" * 50_000):
        sentences(path, "a: sqlmesh\n", text)
    assert process_time() - begun < 20
