"""A version of a table as a DataFrame, read by Spark's own Parquet reader."""

from typing import TYPE_CHECKING

from headrace.lake.commits import AddedFile
from headrace.lake.data_files import folder_of
from headrace.lake.tables import Table
from headrace.spark.carrying import carried
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table_frame(spark: "SparkSession", table: Table, version: int | None = None) -> "DataFrame":
    """All rows of a version, the newest unless one is given.

    The list of files is fixed here: what is committed later is not seen, whenever Spark reads.
    """
    fixed = table.version if version is None else version
    files = table.files(fixed)
    schema = schema_of(table.schema_at(fixed))
    if not files:
        return spark.createDataFrame([], schema)
    if not all(_is_told_by_its_folder(file) for file in files):
        return _by_python(spark, table, fixed)
    frame = (
        spark.read.schema(schema)
        .option("basePath", str(table.place.absolute()))
        .option("__globPaths__", "false")
        .parquet(*(str((table.place / file.path).absolute()) for file in files))
    )
    return frame.select(*(frame[quoted(name)] for name in schema.names))


def _by_python(spark: "SparkSession", table: Table, version: int) -> "DataFrame":
    """Slower, but the partitions' values come from the log."""
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(carried(TableSource))
    reader = spark.read.format(TableSource.name()).options(
        root=str(table.place.absolute().parent.parent),
        table=table.name,
        generation=str(table.generation),
        version=str(version),
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
