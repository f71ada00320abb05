"""What a cleanup may drop, by the names that state and ledger give."""

from __future__ import annotations

import pytest
from sqlglot import exp

from ci_bot.worker.cleanup.remove_environment import separate_views_to_clean_up_from_prod
from ci_bot.worker.messages.problems import extract_headline_of_error_with_cause
from ci_bot.worker.runtime.spark_catalog import SparkRelation

REVENUE = SparkRelation("spark_catalog", "shop__pr_7", "revenue")
SPELLED = SparkRelation("Spark_Catalog", "SHOP__PR_7", "Revenue")
NOTES = SparkRelation("spark_catalog", "shop__pr_7", "notes")
ELSEWHERE = SparkRelation("spark_catalog", "stock__pr_7", "items")


def test_objects__of_two_spellings_are_one() -> None:
    found, foreign = separate_views_to_clean_up_from_prod([REVENUE, SPELLED], [], own_schemas=True)

    assert [view.object_key for view in found.views] == [REVENUE.object_key]
    assert len(found.schemas) == 1
    assert foreign == []


@pytest.mark.parametrize("of_prod", [REVENUE, SPELLED])
def test_objects__that_are_prods_in_any_spelling__stay_with_their_schema(
    of_prod: SparkRelation,
) -> None:
    found, foreign = separate_views_to_clean_up_from_prod(
        [REVENUE, NOTES, ELSEWHERE], [of_prod], own_schemas=True
    )

    assert found.views == [NOTES, ELSEWHERE]
    assert found.schemas == [("spark_catalog", "stock__pr_7")]
    assert foreign == [REVENUE.shown_name]


def test_objects__with_the_suffix_on_the_table__have_no_schema_of_their_own() -> None:
    found, _ = separate_views_to_clean_up_from_prod([REVENUE], [], own_schemas=False)

    assert (found.views, found.schemas) == ([REVENUE], [])


@pytest.mark.parametrize(
    "name",
    ['a"b', "a\\b", 'a\\"b', "a`b", "a'b", "a.b", "a b", "select", "\u00fc", "1a", "a\nb", "{x}"],
)
def test_name__as_sqlmesh_writes_it__is_read_back(name: str) -> None:
    """(`QualifiedViewName.for_environment`)"""
    written = exp.table_name(exp.table_(name, db=name, catalog="lake"))

    assert SparkRelation.parse_name(written, "spark_catalog") == SparkRelation("lake", name, name)


METASTORE = """\
An error occurred while calling o63.sql.
: org.apache.hadoop.hive.ql.metadata.HiveException: Unable to instantiate the client
\tat org.apache.hadoop.hive.ql.metadata.Hive.getMSC(Hive.java:1190)
Caused by: java.lang.reflect.InvocationTargetException
\t... 12 more
Caused by: MetaException(message:Version information not found in metastore.)
\tat org.apache.hadoop.hive.metastore.ObjectStore.checkSchema(ObjectStore.java:9085)
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            METASTORE,
            "org.apache.hadoop.hive.ql.metadata.HiveException: Unable to instantiate the client. "
            "The cause: MetaException(message:Version information not found in metastore.)",
        ),
        ("Permission denied\nsecond line", "Permission denied"),
    ],
)
def test_headline__of_what_java_says__has_the_last_cause(text: str, told: str) -> None:
    assert extract_headline_of_error_with_cause(RuntimeError(text)) == told
