"""`format("headrace-table")`: a table of the lake as a stream, or as a batch.

A merged view of a lambda pipeline can only be read as a batch. Options:

- `root`, `table` and `generation`;
- `startingVersion`: 0 for all rows, n for the rows of commit n and later ones;
- `maxFilesPerTrigger`;
- `columns`: names joined by commas;
- `commitVersion`: adds the column `_commit_version`, and reads rows in the order of their commits;
- for batches `version`, and `view`, the entry of a merged view as JSON instead of the catalog's.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import AddedFile
from headrace.lake.errors import LakeError
from headrace.lake.merged_views import COMMIT_VERSION, Pair, layers_of, merged_rows
from headrace.lake.reading import read_batches
from headrace.lake.tables import Table
from headrace.spark.launching.pickled_package import PickledWithPackage
from headrace.spark.option_values import OptionValues
from headrace.spark.tables.plans import Position, advanced, bins, planned
from headrace.spark.tables.schemas import arrow_schema_of, schema_of

_TASK_BYTES = 8 << 20
_OPTIONS = (
    "root",
    "table",
    "generation",
    "startingVersion",
    "maxFilesPerTrigger",
    "columns",
    "commitVersion",
    "version",
    "view",
)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a reader."""

    root: str
    table: str
    generation: int | None = None
    starting_version: int = 0
    files_max: int | None = None
    columns: tuple[str, ...] | None = None
    commit_version: bool = False
    version: int | None = None
    view: MergedViewEntry | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "TableOptions":
        """Parse Spark's options, whose names are case-insensitive, and reject unknown ones."""
        given = {name.lower(): value for name, value in options.items() if name != "path"}
        unknown = given.keys() - {name.lower() for name in _OPTIONS}
        if unknown:
            raise LakeError(
                f"{', '.join(sorted(unknown))} is not an option of a table; options:"
                f" {', '.join(_OPTIONS)}"
            )
        for name in ("root", "table"):
            if name not in given:
                raise LakeError(f"the option {name} is missing: give .option('{name}', ...)")
        values, view = OptionValues(given, LakeError), given.get("view")
        return cls(
            root=given["root"],
            table=given["table"],
            generation=values.number("generation", 1),
            starting_version=values.number("startingVersion", 0) or 0,
            files_max=values.number("maxFilesPerTrigger", 1),
            columns=values.words("columns") or None,
            commit_version=values.flag("commitVersion"),
            version=values.number("version", 0),
            view=msgspec.json.decode(view, type=MergedViewEntry) if view else None,
        )

    def open(self) -> Table:
        return Lake(self.root).table(self.table, self.generation)

    def merged_view(self) -> MergedViewEntry | None:
        """Return the merged view of this name; None if it is a table.

        A name may be both during a migration; then the generation decides.
        """
        if self.view is not None:
            return self.view
        lake = Lake(self.root)
        is_table = self.generation is not None and lake.has(self.table, self.generation)
        return None if is_table else lake.views().get(self.table)

    def layers(self, view: MergedViewEntry) -> Pair:
        """Return both layers; a replay builds them together, with the same generation."""
        chosen = {} if self.generation is None else dict.fromkeys(layers_of(view), self.generation)
        return Lake(self.root).layers(view, chosen)


@dataclass
class FilesPartition(InputPartition):
    """The files of a task."""

    place: str
    files: Sequence[AddedFile]
    partition_by: tuple[str, ...]


@dataclass
class MergedPartition(InputPartition):
    """Versions of both layers of a merged view, which one task aggregates."""

    batch_version: int
    speed_version: int


class TableSource(PickledWithPackage, DataSource):
    """The source of a table of the lake, registered with the session."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._chosen = TableOptions.of(dict(options))

    @classmethod
    def name(cls) -> str:
        return "headrace-table"

    def schema(self) -> StructType:
        view = self._chosen.merged_view()
        if view is None:
            schema = self._chosen.open().schema
        else:
            stored = self._chosen.layers(view).batch.schema
            schema = pa.schema([_field(stored, name) for name in (*view.keys, *view.merge)])
        if self._chosen.columns is not None:
            schema = pa.schema([_field(schema, name) for name in self._chosen.columns])
        if self._chosen.commit_version:
            schema = schema.append(pa.field(COMMIT_VERSION, pa.int64()))
        return schema_of(schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self._chosen, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return TableStreamReader(self._chosen, schema)


class _Reading(PickledWithPackage):
    """The part of both readers that runs in tasks."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows as Arrow batches; Spark passes None if no tasks were planned."""
        if isinstance(partition, MergedPartition):
            yield from self._merged(partition)
        if not isinstance(partition, FilesPartition):
            return
        wanted = arrow_schema_of(self._schema)
        added = COMMIT_VERSION if self._options.commit_version else None
        stored = pa.schema([field for field in wanted if field.name != added])
        for file in partition.files:
            for batch in read_batches(
                Path(partition.place), file, stored, partition.partition_by, stored.names
            ):
                if self._options.commit_version:
                    version = pa.repeat(pa.scalar(file.version, pa.int64()), batch.num_rows)
                    batch = batch.append_column(wanted.field(COMMIT_VERSION), version)
                yield batch.select(wanted.names)

    def _merged(self, partition: MergedPartition) -> Iterator[Any]:
        view = self._options.merged_view()
        assert view is not None, "the partition was planned for a view"
        layers = self._options.layers(view).at(partition.batch_version, partition.speed_version)
        yield from merged_rows(view, layers).select(self._schema.names).to_batches()


class TableReader(_Reading, DataSourceReader):
    """Reads one version, by default the newest."""

    def partitions(self) -> Sequence[InputPartition]:
        view = self._options.merged_view()
        if view is not None:
            now = self._options.layers(view)
            return [MergedPartition(now.batch_version, now.speed_version)]
        table = self._options.open()
        after = self._options.starting_version - 1
        newest = table.version if self._options.version is None else self._options.version
        if after >= 0:
            return _partitions(table, table.added(after, newest))
        in_order = self._options.commit_version
        return _partitions(
            table, table.files_as_arrived(newest) if in_order else table.files(newest)
        )


class TableStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a table's commits; the table is opened once, as Spark polls all the time."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._table: Table | None = None
        self._target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._position(self._options.starting_version - 1).document()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self._options.files_max
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._opened().version

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        table = self._opened()
        newest = table.version if self._target is None else self._target
        files_max = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return advanced(table, self._parsed(start), newest, files_max).document()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._position(self._opened().version).document()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        table = self._opened()
        files = planned(
            table,
            self._parsed(start),
            self._parsed(end),
            with_versions=self._options.commit_version,
        )
        return _partitions(table, files)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the log is kept for all readers."""

    def stop(self) -> None:
        self._table = None

    def _opened(self) -> Table:
        if self._table is None:
            self._table = self._options.open()
        return self._table

    def _parsed(self, offset: dict[str, Any]) -> Position:
        table = self._opened()
        return Position.of(offset, table.name, table.table_id)

    def _position(self, version: int) -> Position:
        table = self._opened()
        return Position(table.name, table.table_id, version)


def _partitions(table: Table, files: Sequence[AddedFile]) -> list[InputPartition]:
    by = table.partition_by
    groups = bins(files, _TASK_BYTES, lambda file: file.size_bytes)
    return [FilesPartition(str(table.place), group, by) for group in groups]


def _field(schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        raise LakeError(f"the table has no column {name}; it has {', '.join(schema.names)}")
    return schema.field(name)
