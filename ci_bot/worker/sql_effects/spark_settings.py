"""The effect of a setting of Spark: nothing, only speed, values, or the meaning of names and paths.

One table serves the connection's `config` in a configuration, SET in statements, and
`spark.conf.set` in Python. Its sources are Spark's own descriptions of its settings (`SQLConf`,
`StaticSQLConf`, the pages "Configuration" and "SQL Migration Guide"; 3.5, and the settings that 4.0
adds), and those of Delta, Iceberg, Hudi and Databricks. A setting changes values if the same query
over the same data can give other rows, values, types or names of columns. A setting that only makes
a query fail changes nothing. A setting on no list is unknown.

    find_effect_of_setting("spark.sql.ansi.enabled")         "values"
    find_effect_of_setting("spark.sql.shuffle.partitions")   "speed"
    find_effect_of_setting("spark.sql.warehouse.dir")        "places"
    find_effect_of_setting("spark.acme.mode")                "unknown"
"""

from __future__ import annotations

import re
from typing import Literal

from ci_bot.worker.sql_effects.effects import SPARK, SqlEffect, make_unknown_effect

SettingMeaning = Literal[
    "nothing",  # messages, names of jobs, checks, passwords
    "speed",  # time, memory, and the split of work and files
    "values",  # results of queries, or the content of tables
    "places",  # the tables and files that names mean, and the programs that take part
    "unknown",
]

# Keys after `spark.sql.`, in Spark's spelling: SQLMesh's SET writes keys in lower case, and then
# Spark does not know a key with capitals. A `*` matches any ending.
_VALUES = """
    ansi.* session.timeZone legacy.* storeAssignmentPolicy caseSensitive timestampType
    mapKeyDedupPolicy decimalOperations.* charAsVarchar readSideCharPadding
    preserveCharVarcharTypeInfo chunkBase64String.* columnNameOfCorruptRecord defaultColumn.*
    parquet.binaryAsString parquet.int96AsTimestamp parquet.int96TimestampConversion
    parquet.datetimeRebaseModeInRead parquet.datetimeRebaseModeInWrite
    parquet.int96RebaseModeInRead parquet.int96RebaseModeInWrite parquet.outputTimestampType
    parquet.inferTimestampNTZ.enabled parquet.mergeSchema parquet.respectSummaryFiles
    parquet.writeLegacyFormat parquet.fieldId.* parquet.* avro.datetimeRebaseModeInRead
    avro.datetimeRebaseModeInWrite avro.* orc.mergeSchema orc.impl orc.*
    csv.parser.columnPruning.enabled csv.* json.enablePartialResults json.*
    jsonGenerator.ignoreNullFields jsonGenerator.writeNullIfWithDefaultValue xml.* variant.*
    collation.* icu.* binaryOutputStyle files.ignoreCorruptFiles files.ignoreMissingFiles
    files.ignoreInvalidPartitionPaths hive.verifyPartitionPath hive.caseSensitiveInferenceMode
    hive.convertCTAS hive.convertInsertingPartitionedTable hive.convertInsertingUnpartitionedTable
    hive.convertMetastoreCtas hive.convertMetastoreInsertDir hive.convertMetastoreOrc
    hive.convertMetastoreParquet hive.convertMetastoreParquet.mergeSchema
    hive.manageFilesourcePartitions sources.default sources.partitionColumnTypeInference.enabled
    sources.validatePartitionColumns sources.useV1SourceList
    execution.pandas.convertToArrowArraySafely execution.pandas.structHandlingMode
    execution.pandas.inferPandasDictAsMap execution.pandas.* execution.pythonUDF.arrow.*
    execution.pythonUDTF.arrow.* execution.sortBeforeRepartition function.concatBinaryAsString
    function.eltOutputAsString groupByAliases groupByOrdinal orderByOrdinal retainGroupColumns
    lateralColumnAlias.enableImplicitResolution stableDerivedColumnAlias.enabled
    analyzer.failAmbiguousSelfJoin selfJoinAutoResolveAmbiguity parser.escapedStringLiterals
    parser.quotedRegexColumnNames variable.substitute optimizer.metadataOnly
    optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled
    pyspark.inferNestedDictAsStruct.enabled pyspark.legacy.*
    iceberg.handle-timestamp-without-timezone iceberg.use-timestamp-without-timezone-in-new-tables
    iceberg.check-nullability iceberg.check-ordering iceberg.merge-schema
    iceberg.set-all-nullable-field
"""

_SPEED = """
    adaptive.* addPartitionInBatch.size analyzer.canonicalization.* analyzer.maxIterations
    autoBroadcastJoinThreshold avro.compression.codec avro.deflate.level avro.xz.level
    avro.zstandard.* avro.filterPushdown.enabled broadcastExchange.maxThreadThreshold
    broadcastTimeout bucketing.* cartesianProductExec.* cbo.* codegen.*
    columnVector.offheap.enabled constraintPropagation.enabled csv.filterPushdown.enabled
    csv.parser.inputBufferSize defaultSizeInBytes exchange.reuse execution.arrow.*
    execution.broadcastHashJoin.outputPartitioningExpandLimit execution.fastFailOnFileFormatOutput
    execution.pandas.udf.buffer.size execution.rangeExchange.sampleSizePerPartition
    execution.removeRedundantProjects execution.removeRedundantSorts
    execution.replaceHashWithSortAgg execution.reuseSubquery execution.topKSortFallbackThreshold
    execution.useObjectHashAggregateExec execution.usePartitionEvaluator files.maxPartitionBytes
    files.maxPartitionNum files.maxRecordsPerFile files.minPartitionNum files.openCostInBytes
    filesourceTableRelationCacheSize hive.advancedPartitionPredicatePushdown.enabled
    hive.filesourcePartitionFileCacheSize hive.gatherFastStats hive.metastorePartitionPruning
    hive.metastorePartitionPruningFallbackOnException hive.metastorePartitionPruningFastFallback
    hive.metastorePartitionPruningInSetThreshold inMemoryColumnarStorage.*
    inMemoryTableScanStatistics.enable join.preferSortMergeJoin json.filterPushdown.enabled
    json.useUnsafeRow leafNodeDefaultParallelism limit.initialNumPartitions limit.scaleUpFactor
    maxConcurrentOutputFileWriters maxSinglePartitionBytes metadataCacheTTLSeconds
    objectHashAggregate.* optimizeNullAwareAntiJoin optimizer.* orc.aggregatePushdown
    orc.columnarReaderBatchSize orc.columnarWriterBatchSize orc.compression.codec
    orc.enableNestedColumnVectorizedReader orc.enableVectorizedReader orc.filterPushdown
    parquet.aggregatePushdown parquet.columnarReaderBatchSize parquet.compression.codec
    parquet.enableNestedColumnVectorizedReader parquet.enableVectorizedReader
    parquet.filterPushdown parquet.filterPushdown.* parquet.pushdown.inFilterThreshold
    parquet.recordLevelFilter.enabled planner.* requireAllClusterKeysForCoPartition
    requireAllClusterKeysForDistribution session.localRelationCacheThreshold
    sessionWindow.buffer.* shuffle.* shuffledHashJoinFactor shuffleDependency.* shuffleExchange.*
    sort.enableRadixSort sortMergeJoinExec.* sources.bucketing.* sources.fileCompressionFactor
    sources.ignoreDataLocality sources.parallelPartitionDiscovery.* sources.v2.bucketing.*
    statistics.* subexpressionElimination.* subquery.maxThreadThreshold windowExec.*
    iceberg.vectorization.enabled iceberg.planning.* iceberg.data-planning-mode
    iceberg.delete-planning-mode iceberg.distribution-mode iceberg.compression-codec
    iceberg.compression-level iceberg.compression-strategy iceberg.locality.enabled
    iceberg.aggregate-push-down.enabled iceberg.executor-cache.* iceberg.advisory-partition-size
"""

_NOTHING = """
    allowNamedFunctionArguments cli.print.header cteRecursionLevelLimit cteRecursionRowLimit
    crossJoin.enabled datetime.java8API.enabled debug debug.maxToStringFields error.messageFormat
    event.truncate.length hive.dropPartitionByName.enabled hive.tablePropertyLengthThreshold
    hive.thriftServer.async hive.thriftServer.singleSession maxMetadataStringLength
    maxPlanStringLength operatorPipeSyntaxEnabled pivotMaxValues planChangeLog.*
    planChangeValidation execution.pyspark.udf.simplifiedTraceback.enabled
    pyspark.jvmStacktrace.enabled repl.* scriptTransformation.exitTimeoutInSeconds
    sources.binaryFile.maxLength sources.bucketing.maxBuckets sources.schemaStringLengthThreshold
    streaming.* thriftServer.* tvf.* ui.* view.maxNestedViewDepth
    legacy.setCommandRejectsSparkCoreConfs legacy.keepCommandOutputSchema
    defaultUrlStreamHandlerFactory.enabled runSQLOnFiles legacy.emptyCurrentDBInCli
    legacy.addSingleFileInAddFile legacy.useV1Command
"""
# Such a key names a class, a file, a catalog, a branch, or a program.
_PLACES = re.compile(
    r"""(?x) class$ | committer | commitprotocol | [.-]impl$ | path$ | dir$ | uris?$ | \burl
      | (?<!al)location | (^|\.)catalog(\.|implementation|$) | defaultcatalog | warehouse
      | extensions | provider | endpoint | jars | listeners | plugins | interceptor
      | ^spark\.(master|remote|files$|archives|submit\.pyfiles|jars|wap\.)
      | ^spark\.pyspark\.(driver\.)?python
      | ^spark\.sql\.(udt\.|maven\.|globaltempdatabase|cache\.serializer)
      | ^spark\.sql\.hive\.(metastore\.|version)
      | ^spark\.sql\.execution\.pyspark\.python | python\.(worker|daemon)\.module
      | fs\.default(fs|\.name)$ | javax\.jdo | metastore\.uris | executorenv\. | appmasterenv\.
    """
)
# Keys with `dir` or a similar word that do not name an important file or program.
_NO_PLACES = re.compile(
    r"""(?x)^spark\.(
      sql\.hive\.(convertmetastoreinsertdir|verifypartitionpath)$ | sql\.orc\.impl$
      |local\.dir$|eventlog\.|history\.|kubernetes\.|log|ui\.|ssl\.|metrics\.|kerberos\.
    )"""
)
# Settings of the process, which Spark reads only when it starts.
_PROCESS = re.compile(
    r"""(?x)^spark\.(
      app\.|cores\.|local\.dir|executor\.|driver\.|memory|shuffle\.|network\.|rpc\.|ui\.|eventlog\.|io\.
      |dynamicallocation\.|scheduler\.|task\.|stage\.|stages\.|speculation|locality\.|serializer
      |kryo|rdd\.|broadcast\.|cleaner\.|storage\.|log|metrics\.|yarn\.|kubernetes\.|mesos\.
      |history\.|reducer\.|default\.parallelism|port\.|blockmanager\.|submit\.deploymode|buffer\.
      |excludeonfailure\.|blacklist\.|decommission\.|resources\.|barrier\.|connect\.|python\.worker\.
      |worker\.|deploy\.|ssl\.|authenticate|acls\.|admin\.|modify\.|user\.groups|unsafe\.|checkpoint\.
      |hadoop\.(mapreduce|mapred|fs\.s3a\.(connection|threads|fast|multipart|block|experimental))
    )"""
)

_JAVA_OPTIONS = re.compile(r"^spark\..*javaoptions$")
_OPTIONS_OF_VALUES = re.compile(r"user\.(timezone|language|country|region)|file\.encoding", re.I)

_LOCAL = frozenset(
    {
        "spark.scheduler.pool", "spark.job.description", "spark.jobgroup.id", "spark.job.tags",
        "hive.exec.dynamic.partition", "hive.exec.dynamic.partition.mode",
        "hive.exec.max.dynamic.partitions", "hive.exec.max.dynamic.partitions.pernode",
        "spark.databricks.delta.optimizewrite.enabled",
        "spark.databricks.delta.autocompact.enabled",
        "spark.databricks.delta.schema.automerge.enabled",
        "enable_photon", "max_file_partition_bytes", "statement_timeout", "use_cached_result",
    }
)  # fmt: skip

# The proof of an identity that another setting names. A token is not such a proof, because it is
# the identity itself.
_PASSWORD = re.compile(r"(password|passphrase|secret[.-]?key)$")

_OTHERS: tuple[tuple[re.Pattern[str], SettingMeaning], ...] = (
    (re.compile(r"^spark\.files\.ignore(corrupt|missing)files$"), "values"),
    (re.compile(r"^(ansi_mode|timezone|legacy_time_parser_policy)$"), "values"),
    (
        re.compile(r"^spark\.databricks\.delta\.(optimize|autocompact|stats|stalenesslimit)"),
        "speed",
    ),
    (re.compile(r"^spark\.databricks\.(io\.cache|adaptive|optimizer|photon)\b"), "speed"),
    (re.compile(r"^spark\.databricks\.(delta|sql)\."), "values"),
    (re.compile(r"^hoodie\..*(parallelism|compression|memory|file\.(max|min)\.size)"), "speed"),
    (re.compile(r"^hoodie\."), "values"),
    (
        re.compile(r"^(spark\.hadoop\.)?mapred(uce)?\..*(recursive|supports\.subdirectories)$"),
        "values",
    ),
    (re.compile(r"^(spark\.hadoop\.)?(parquet|orc)\.(compress|block|page|dictionary)"), "speed"),
)
# Spark refuses to change these while it runs (`StaticSQLConf`, `HiveUtils`).
_STATIC = re.compile(
    r"""(?x)^spark\.sql\.(
      warehouse\.dir|catalogimplementation|globaltempdatabase|sources\.schemastringlengththreshold
      |filesourcetablerelationcachesize|codegen\.(cache\.maxentries|comments)|debug|extensions
      |hive\.thriftserver\.singlesession|cache\.serializer|queryexecutionlisteners
      |streaming\.(streamingquerylisteners|ui\.\w+)|ui\.retainedexecutions|metadatacachettlseconds
      |broadcastexchange\.maxthreadthreshold|subquery\.maxthreadthreshold|event\.truncate\.length
      |legacy\.sessioninitwithconfigdefaults|defaulturlstreamhandlerfactory\.enabled
      |hive\.(metastore\.|version)
    )$"""
)

_SQL = "spark.sql."
_OVERWRITE = "spark.sql.sources.partitionoverwritemode"


def _list_settings() -> tuple[
    dict[str, tuple[str, SettingMeaning]], list[tuple[str, SettingMeaning]]
]:
    """Reads the lists of settings.

    Returns:
        Whole keys in lower case with their spelling and effect; and prefixes of keys with their
        effect, the longest first.
    """
    whole: dict[str, tuple[str, SettingMeaning]] = {}
    beginnings: list[tuple[str, SettingMeaning]] = []
    meanings: tuple[tuple[str, SettingMeaning], ...] = (
        (_VALUES, "values"), (_SPEED, "speed"), (_NOTHING, "nothing"),
    )  # fmt: skip
    for text, meaning in meanings:
        for name in text.split():
            if name.endswith("*"):
                beginnings.append((f"{_SQL}{name[:-1]}".lower(), meaning))
            else:
                whole[f"{_SQL}{name}".lower()] = f"{_SQL}{name}", meaning
    return whole, sorted(beginnings, key=lambda item: -len(item[0]))


_WHOLE, _BEGINNINGS = _list_settings()


def find_effect_of_setting(key: str, value: str = "") -> SettingMeaning:
    """Finds the effect of a setting; for a few settings it depends on the value."""
    key = key.lower()
    if key == _OVERWRITE:  # "static" replaces whole tables instead of partitions
        return "nothing" if value.strip("'\"`").lower() == "dynamic" else "places"
    if _JAVA_OPTIONS.match(key):
        return "values" if _OPTIONS_OF_VALUES.search(value) else "speed"
    if key in _LOCAL or _PASSWORD.search(key):
        return "nothing"
    if _PLACES.search(key) and not _NO_PLACES.match(key):
        return "places"
    return _WHOLE[key][1] if key in _WHOLE else _find_effect_of_group(key)


def _find_effect_of_group(key: str) -> SettingMeaning:
    for pattern, meaning in _OTHERS:
        if pattern.search(key):
            return meaning
    if key.startswith(_SQL):
        return next((m for start, m in _BEGINNINGS if key.startswith(start)), "unknown")
    return "speed" if _PROCESS.match(key) else "unknown"


def find_setting_spelling(key: str) -> str | None:
    """Finds Spark's spelling of a case-sensitive key; None if it is not known."""
    known = _WHOLE.get(key.lower())
    return known[0] if known is not None else None


def is_start_setting(key: str) -> bool:
    """Whether Spark reads the setting only when it starts, and refuses a SET."""
    key = key.lower()
    return bool(_STATIC.match(key)) or (key not in _LOCAL and bool(_PROCESS.match(key)))


# The effect of SET on the session, or the reason why Spark refuses it.


_KEY = re.compile(r"^[\w.\-]+$")
# For other engines: only settings that change who the session is, or the meaning of its names.
_IDENTITY_KEYS = re.compile(
    r"role|authorization|search_path|schema|catalog|database|warehouse|path"
)

_TIME_ZONE = "spark.sql.session.timeZone"
_HARMLESS = SqlEffect("nothing", "SET")
_IN_PARTS = re.compile(r"^`[^`]*`(\.`?[^`]*`?)+$")


def read_set_effect(text: str, dialect: str, *, parsed: bool) -> SqlEffect:
    """Reads the effect of `SET ...`.

    Args:
        text: the text after the word SET, as the engine gets it.
        parsed: whether the parser has made a tree of the statement, so code in it is found
            elsewhere.
    """
    key, equals, value = (part.strip() for part in text.strip().partition("="))
    words = key.lower().split()
    if words and words[0] in ("variable", "var"):
        return _HARMLESS if parsed else _make_unknown_setting_effect(key)
    if not equals:
        return _read_set_without_value(words, key, dialect)
    plain = key.replace("`", "").replace('"', "")
    if not _KEY.match(plain):
        return _make_unknown_setting_effect(key)
    if dialect in SPARK:
        return _make_spark_setting_effect(plain, key, value)
    return (
        _make_directing_effect(plain.lower()) if _IDENTITY_KEYS.search(text.lower()) else _HARMLESS
    )


def _make_spark_setting_effect(key: str, written: str, value: str) -> SqlEffect:
    meaning = find_effect_of_setting(key, value)
    if meaning in ("places", "unknown"):
        return _make_directing_effect(key.lower())
    if _IN_PARTS.match(written):
        return _make_refused_effect(key, written, value)
    if is_start_setting(key):
        return SqlEffect("fails", "SET", detail=f"Spark takes {key} only when it starts")
    if meaning != "values":
        return _HARMLESS
    spelling = find_setting_spelling(key)
    if spelling is not None and spelling != key:
        return SqlEffect(
            "sets",
            "SET",
            detail=f"{spelling}: written as {key}, which Spark does not know, so nothing is set",
        )
    return SqlEffect("sets", "SET", detail=spelling or key)


def _make_refused_effect(key: str, written: str, value: str) -> SqlEffect:
    """Makes the effect of a SET that Spark refuses.

    SQLMesh quotes each part of a key, but Spark's SET accepts at most one pair of quotes.
    """
    spelling = find_setting_spelling(key) or key
    if spelling == _TIME_ZONE:
        works = "write `SET TIME ZONE '...'`"
    elif spelling == spelling.lower() and re.fullmatch(r"\w+", value):
        works = f"write the whole key in one pair of backticks, SET `{key}` = {value}"
    else:
        works = ""
    works += f"{', or ' if works else ''}set it in the connection's `config` in config.yaml"
    return SqlEffect(
        "fails",
        "SET",
        detail=f"SQLMesh makes of {spelling} the text SET {written} = ..., and Spark refuses that "
        f"(INVALID_SET_SYNTAX); {works}",
    )


def _read_set_without_value(words: list[str], key: str, dialect: str) -> SqlEffect:
    if not words or words == ["-v"] or (len(words) == 1 and _KEY.match(words[0])):
        return _HARMLESS  # shows what is set
    if words[:2] == ["time", "zone"]:
        return (
            SqlEffect("sets", "SET TIME ZONE", detail=_TIME_ZONE) if dialect in SPARK else _HARMLESS
        )
    if words[0] in ("catalog", "role"):
        return _make_directing_effect(" ".join(words[:2]))
    return _make_unknown_setting_effect(key.lower())


def _make_directing_effect(key: str) -> SqlEffect:
    return SqlEffect("directs", "SET", detail=key)


def _make_unknown_setting_effect(key: str) -> SqlEffect:
    return make_unknown_effect("SET", f"the setting {key[:80]}")
