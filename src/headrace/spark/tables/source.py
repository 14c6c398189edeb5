"""`format("headrace-table")`: a table of the lake as a stream, or as a batch.

A merged view of a lambda pipeline is read as a batch only, both layers as one. Options: `root`
and `table`, `generation`, `startingVersion` (0 is everything, n the rows of
commit n and later ones), `maxFilesPerTrigger`, `columns` (names joined by commas),
`commitVersion`, which adds the column `_commit_version` and has tasks read rows in the order in
which they came, and in batch `version`, the one to read, and `view`, the entry of a merged view as
JSON where it is not the one that the catalog has.
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
from headrace.lake.commits import AddedFile
from headrace.lake.errors import LakeError
from headrace.lake.merging import COMMIT_VERSION, Pair, layers_of, merged_rows, pair
from headrace.lake.reading import read_batches
from headrace.lake.tables import Table
from headrace.spark.carrying import Carrier
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
    """What a reader of a table may say."""

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
        """From Spark's options, whose names may be in small letters; unknown ones are refused."""
        given = {name.lower(): value for name, value in options.items() if name != "path"}
        unknown = given.keys() - {name.lower() for name in _OPTIONS}
        if unknown:
            raise LakeError(
                f"{', '.join(sorted(unknown))} is no option of a table; there are"
                f" {', '.join(_OPTIONS)}"
            )
        for name in ("root", "table"):
            if name not in given:
                raise LakeError(f"the option {name} is missing: give .option('{name}', ...)")
        columns, view = given.get("columns"), given.get("view")
        return cls(
            root=given["root"],
            table=given["table"],
            generation=_number(given, "generation", 1),
            starting_version=_number(given, "startingVersion", 0) or 0,
            files_max=_number(given, "maxFilesPerTrigger", 1),
            columns=tuple(name.strip() for name in columns.split(",")) if columns else None,
            commit_version=given.get("commitversion", "false").lower() == "true",
            version=_number(given, "version", 0),
            view=msgspec.json.decode(view, type=MergedViewEntry) if view else None,
        )

    def open(self) -> Table:
        return Lake(self.root).table(self.table, self.generation)

    def merged_view(self) -> MergedViewEntry | None:
        """The merged view of this name whose layers are kept apart; None if it is a table.

        It may be both while it moves from one to the other; then the generation is the table's.
        """
        if self.view is not None:
            return self.view
        lake = Lake(self.root)
        is_table = self.generation is not None and lake.has(self.table, self.generation)
        return None if is_table else lake.views().get(self.table)

    def layers(self, view: MergedViewEntry) -> Pair:
        """Both layers of this moment; a replay builds them together, so they have one number."""
        chosen = {} if self.generation is None else dict.fromkeys(layers_of(view), self.generation)
        return pair(Lake(self.root), view, chosen)


@dataclass
class FilesPartition(InputPartition):
    """Some files of a table, for one task."""

    place: str
    files: Sequence[AddedFile]
    partition_by: tuple[str, ...]


@dataclass
class MergedPartition(InputPartition):
    """Both layers of a merged view, at versions that fit together: an aggregate is for one task."""

    batch_version: int
    speed_version: int


class TableSource(Carrier, DataSource):
    """A table of the lake; registered by whoever makes the session."""

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


class _Reading(Carrier):
    """What tasks do, for both readers; only this travels to them."""

    def __init__(self, options: TableOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The files' rows as Arrow batches. Spark asks for None where nothing was planned."""
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
        assert view is not None, "it was one when the partition was planned"
        layers = self._options.layers(view).at(partition.batch_version, partition.speed_version)
        yield from merged_rows(view, layers).select(self._schema.names).to_batches()


class TableReader(_Reading, DataSourceReader):
    """One version, once: the newest unless another is given."""

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
    """Follows a table's commits; asked all the time, so the table is opened once."""

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
        """Nothing to let go of: the log is kept for all readers alike."""

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
    return [FilesPartition(str(table.place), group, by) for group in bins(files, _TASK_BYTES)]


def _field(schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        raise LakeError(f"the table has no column {name}; it has {', '.join(schema.names)}")
    return schema.field(name)


def _number(given: Mapping[str, str], name: str, least: int) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isdigit() or int(text) < least:
        raise LakeError(f"{name} is {text!r}; it is a number, {least} or more")
    return int(text)
