"""What the columns of a Parquet file take in it, compressed, from its footer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


def column_sizes(session: Any, path: str) -> Mapping[str, int] | None:
    """Bytes of each column by its name in lower case; a struct is one. None where the file cannot
    tell: it is no Parquet, or encrypted, or may not be read.

    Args:
        session: A classic `SparkSession`.
        path: As Spark names the file, with its file system.
    """
    jvm = session._jvm
    try:
        settings = session._jsparkSession.sessionState().newHadoopConf()
        file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
            jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(path)), settings
        )
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            found: Counter[str] = Counter()
            for block in reader.getFooter().getBlocks():
                for column in block.getColumns():
                    found[str(column.getPath().toArray()[0]).lower()] += int(column.getTotalSize())
        finally:
            reader.close()
    except Exception:
        # The types of the columns tell it, too, if not as well.
        return None
    return found or None
