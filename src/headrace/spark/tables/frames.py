"""Versions of tables and merged views as DataFrames, by Spark's own Parquet reader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.lake.commit_log import AddedFile
from headrace.lake.merged_views import COMMIT_VERSION, Pair, check_columns
from headrace.lake.partitions import folder_of
from headrace.lake.tables import Table
from headrace.spark.launching.pickled_package import with_package
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headrace.lake.catalog import MergedViewEntry

_NUMBER, _FILE, _NAME, _ROW = "__number", "__file", "__name", "__row"
_ROW_BITS = 36
"""The bits of a row's number for its position in the file, which has 128 MB at most."""


def table_frame(
    spark: "SparkSession",
    table: Table,
    version: int | None = None,
    chosen: Sequence[AddedFile] | None = None,
) -> "DataFrame":
    """Return the rows of a version, by default the newest, or at least those of the chosen files.

    The list of files is fixed here, so later commits are not visible whenever Spark reads.
    """
    fixed = table.version if version is None else version
    files = table.files(fixed) if chosen is None else chosen
    schema = schema_of(table.schema_at(fixed))
    if not files:
        return spark.createDataFrame([], schema)
    if not all(_has_plain_folder(file) for file in files):
        return _by_python(spark, table, fixed)
    frame = _by_spark(spark, table, files, schema)
    return frame.select(*(frame[quoted(name)] for name in schema.names))


def merged_frame(spark: "SparkSession", view: "MergedViewEntry", now: Pair) -> "DataFrame":
    """Return a merged view's rows at these versions, in the types of the batch table.

    Spark's equivalent of `lake.merged_views.merged_select`, without rows in the driver.
    """
    from pyspark.sql import functions as F  # noqa: N812

    batch = table_frame(spark, now.batch, now.batch_version)
    speed = table_frame(spark, now.speed, now.speed_version)
    check_columns(view, batch.columns, speed.columns)
    columns = [quoted(name) for name in (*view.keys, *view.merge)]
    behind = speed.where(F.col(quoted(COMMIT_VERSION)) > now.covered_version)
    both = batch.select(*columns).unionAll(behind.select(*columns))
    merged = [
        F.call_function(how, F.col(quoted(name))).alias(name) for name, how in view.merge.items()
    ]
    rows = both.groupBy(*map(quoted, view.keys)).agg(*merged)
    # Sums are wider than their columns.
    types = {field.name: field.dataType for field in batch.schema}
    return rows.select(
        *(F.col(quoted(name)).cast(types[name]).alias(name) for name in (*view.keys, *view.merge))
    )


def first_rows(
    spark: "SparkSession", table: Table, version: int, keys: Sequence[str]
) -> "DataFrame":
    """Return the first row of each key in a version.

    Each column is aggregated separately, by the same order, so Spark reads only used columns.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows = _numbered(spark, table, version)
    names = [field.name for field in table.schema_at(version)]
    chosen = [
        F.min_by(F.col(quoted(name)), F.col(_NUMBER)).alias(name)
        for name in names
        if name not in keys
    ]
    by = [F.col(quoted(key)) for key in keys]
    found = rows.groupBy(*by).agg(*chosen) if chosen else rows.select(*by).distinct()
    return found.select(*map(quoted, names))


def _numbered(spark: "SparkSession", table: Table, version: int) -> "DataFrame":
    """Return a version's rows with increasing numbers in the order of their commits."""
    from pyspark.sql import functions as F  # noqa: N812

    files = table.files_as_arrived(version)
    if not all(_has_plain_folder(file) for file in files):
        rows = _by_python(spark, table, version, commitVersion="true")
        # The source keeps the order of files over its tasks.
        return rows.withColumn(_NUMBER, F.monotonically_increasing_id())
    schema = schema_of(table.schema_at(version))
    if not files:
        return spark.createDataFrame([], schema).withColumn(_NUMBER, F.lit(0).cast("long"))
    names = [file.path.rpartition("/")[2] for file in files]
    numbers = spark.createDataFrame(list(enumerate(names)), f"{_FILE} long, {_NAME} string")
    frame = _by_spark(spark, table, files, schema)
    place = frame.metadataColumn("_metadata")
    rows = frame.select("*", place["file_name"].alias(_NAME), place["row_index"].alias(_ROW))
    number = F.shiftleft(F.col(_FILE), _ROW_BITS) + F.col(_ROW)
    placed = rows.join(F.broadcast(numbers), _NAME).withColumn(_NUMBER, number)
    return placed.drop(_NAME, _FILE, _ROW)


def _by_spark(
    spark: "SparkSession", table: Table, files: Sequence[AddedFile], schema: "StructType"
) -> "DataFrame":
    return (
        spark.read.schema(schema)
        .option("basePath", str(table.place.absolute()))
        .option("__globPaths__", "false")
        .parquet(*(str((table.place / file.path).absolute()) for file in files))
    )


def _by_python(spark: "SparkSession", table: Table, version: int, **options: str) -> "DataFrame":
    """Read by the Python source: slower, but with partition values from the log."""
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(with_package(TableSource))
    reader = spark.read.format(TableSource.name()).options(
        root=str(table.place.absolute().parent.parent),
        table=table.name,
        generation=str(table.generation),
        version=str(version),
        **options,
    )
    return reader.load()


def _has_plain_folder(file: AddedFile) -> bool:
    """Return whether Spark reads the exact partition values from the path.

    Long values and those beyond ASCII may have folders that Spark reads differently.
    """
    folders = [folder_of(name, value) for name, value in file.partition_values.items()]
    return file.path.split("/")[:-1] == folders and all("=" in folder for folder in folders)


def quoted(name: str) -> str:
    """Quote a column's name for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
