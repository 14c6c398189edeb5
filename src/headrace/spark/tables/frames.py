"""A version of a table, or of a merged view, as a DataFrame, by Spark's own Parquet reader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.lake.commits import AddedFile
from headrace.lake.merging import COMMIT_VERSION, Pair, check_columns
from headrace.lake.partitions import folder_of
from headrace.lake.tables import Table
from headrace.spark.carrying import carried
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headrace.lake.catalog import MergedViewEntry

_NUMBER, _FILE, _NAME, _ROW = "__number", "__file", "__name", "__row"
_ROW_BITS = 36
"""So many bits of a row's number are for its place in the file; a file has 128 MB at most."""


def table_frame(
    spark: "SparkSession",
    table: Table,
    version: int | None = None,
    chosen: Sequence[AddedFile] | None = None,
) -> "DataFrame":
    """All rows of a version, the newest unless one is given; or of some of its files at least.

    The list of files is fixed here: what is committed later is not seen, whenever Spark reads.
    """
    fixed = table.version if version is None else version
    files = table.files(fixed) if chosen is None else chosen
    schema = schema_of(table.schema_at(fixed))
    if not files:
        return spark.createDataFrame([], schema)
    if not all(_is_told_by_its_folder(file) for file in files):
        return _by_python(spark, table, fixed)
    frame = _by_spark(spark, table, files, schema)
    return frame.select(*(frame[quoted(name)] for name in schema.names))


def merged_frame(spark: "SparkSession", view: "MergedViewEntry", now: Pair) -> "DataFrame":
    """A merged view's rows at some moment, in the types of the batch table.

    What `lake.merging.merged_select` says, as a plan of Spark: the rows of both layers stay with
    its tasks.
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
    # Sums are wider than what they add up.
    types = {field.name: field.dataType for field in batch.schema}
    return rows.select(
        *(F.col(quoted(name)).cast(types[name]).alias(name) for name in (*view.keys, *view.merge))
    )


def first_rows(
    spark: "SparkSession", table: Table, version: int, keys: Sequence[str]
) -> "DataFrame":
    """Of a version's rows with the same keys the one that came first.

    Each column is chosen by itself, by one order, so that Spark reads those only that are used.
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
    """A version's rows with numbers that grow in the order in which they came."""
    from pyspark.sql import functions as F  # noqa: N812

    files = table.files_as_arrived(version)
    if not all(_is_told_by_its_folder(file) for file in files):
        rows = _by_python(spark, table, version, commitVersion="true")
        # Its tasks have the files in order, and each its rows.
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
    """Slower, but the partitions' values come from the log."""
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(carried(TableSource))
    reader = spark.read.format(TableSource.name()).options(
        root=str(table.place.absolute().parent.parent),
        table=table.name,
        generation=str(table.generation),
        version=str(version),
        **options,
    )
    return reader.load()


def _is_told_by_its_folder(file: AddedFile) -> bool:
    """Whether Spark reads the partition's values from the path as they are.

    Values that are too long or not ASCII may have folders whose names Spark takes for others.
    """
    folders = [folder_of(name, value) for name, value in file.partition_values.items()]
    return file.path.split("/")[:-1] == folders and all("=" in folder for folder in folders)


def quoted(name: str) -> str:
    """A column's name as Spark's SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
