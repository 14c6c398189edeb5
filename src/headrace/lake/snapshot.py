"""The newest version of a table: schema, properties and tokens, updated from its log.

A pipeline needs these before every micro-batch. deltalake would read the whole list of files;
following the commits costs one lookup of the next file, at any size of the table.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError

from headrace.lake.commit_log import AddedFile, Commit, CommitLog, Token
from headrace.lake.errors import TableLost, UnsupportedTable, VersionGone
from headrace.lake.key_bounds import FileBounds, Span, is_bounded, numbers
from headrace.lake.metadata import FEATURES_LEVEL
from headrace.lake.partitions import partition_texts

_FEATURES = {"appendOnly", "invariants", "timestampNtz"}
"""The supported writer features; Headrace itself never enables invariants."""
_BEHIND_MAX = 64
"""With more new commits, reading the newest checkpoint is quicker."""


class Snapshot:
    """The newest known state of a table; `follow` updates it."""

    version: int
    schema: pa.Schema
    partition_by: tuple[str, ...]
    table_id: str
    properties: dict[str, str]
    _delta: DeltaTable

    def __init__(self, place: Path) -> None:
        self.log = CommitLog(place)
        self._place = place
        self._tokens: dict[str, int | None] = {}
        self._open()

    def follow(self) -> None:
        """Apply the commits since the last call.

        The next commit may be missing because it was cleaned up. Then a checkpoint is newer than
        the known version.
        """
        while self.log.has(self.version + 1):
            try:
                commit = self.log.read(self.version + 1)
            except VersionGone:
                break  # The commit was cleaned up in between.
            self._apply(commit)
        if self.log.last_checkpoint() > self.version:
            self._open()

    def has(self, token: Token) -> bool:
        """Return whether the batch, or a later one of its writer, is committed."""
        newest = self.last_batch(token.writer)
        return newest is not None and newest >= token.batch

    def last_batch(self, writer: str) -> int | None:
        """Return the newest committed batch of a writer, if there is one."""
        if writer not in self._tokens:
            self._tokens[writer] = self._delta.transaction_version(writer)
        return self._tokens[writer]

    def delta(self) -> DeltaTable:
        """Return deltalake's table at exactly this version, with all files."""
        if self.version - self._delta.version() > _BEHIND_MAX:
            self._delta = _opened(self._place)
        elif self._delta.version() < self.version:
            self._delta.update_incremental()
        if self._delta.version() != self.version:
            self._delta = at_version(self._place, self.version)
        return self._delta

    def check_writable(self) -> None:
        """Reject a table that requires unsupported writer features."""
        protocol = self._delta.protocol()
        required = set(protocol.writer_features or ())
        level = protocol.min_writer_version
        if level <= 2 or (level == FEATURES_LEVEL and required <= _FEATURES):
            return
        what = ", ".join(sorted(required - _FEATURES)) or f"writer version {level}"
        raise UnsupportedTable(
            f"the table at {self._place} requires {what}, which Headrace cannot write; use a table"
            " without it"
        )

    def _open(self) -> None:
        self._delta = _opened(self._place)
        self.version = self._delta.version()
        self.schema = arrow_schema(self._delta.schema())
        metadata = self._delta.metadata()
        self.partition_by = tuple(metadata.partition_columns)
        self.table_id = str(metadata.id)
        self.properties = dict(metadata.configuration)
        self._tokens.clear()
        self.check_writable()

    def _apply(self, commit: Commit) -> None:
        for token in commit.tokens:
            self._tokens[token.writer] = token.batch
        self.version = commit.version
        if commit.has_new_schema:
            self._open()


def arrow_schema(schema: DeltaSchema) -> pa.Schema:
    """Convert a Delta schema to Arrow, without metadata."""
    return pa.schema(schema.to_arrow()).remove_metadata()


def canonical(schema: pa.Schema) -> pa.Schema:
    """Return the schema as read back from Delta's log, with its names inside lists and maps."""
    return arrow_schema(DeltaSchema.from_arrow(schema))


def files_of(delta: DeltaTable) -> list[AddedFile]:
    """Return the files of a version; their own `version` is not looked up and is -1."""
    found = pa.table(delta.get_add_actions(flatten=False))
    names = ["path", "num_records", "size_bytes"]
    paths, rows, sizes = (found[name].to_pylist() for name in names)
    has_partitions = "partition" in found.column_names
    partitions = _partition_values(found["partition"]) if has_partitions else [{}] * len(paths)
    return [
        AddedFile(
            version=-1,
            path=unquote(path),
            partition_values=partition,
            rows=-1 if count is None else count,
            size_bytes=size_bytes,
        )
        for path, count, size_bytes, partition in zip(paths, rows, sizes, partitions, strict=True)
    ]


def _partition_values(column: pa.ChunkedArray) -> list[dict[str, str | None]]:
    """Return the partition values of each file, as the log has them."""
    names = [field.name for field in column.type]
    texts = [partition_texts(values) for values in column.combine_chunks().flatten()]
    return [dict(zip(names, values, strict=True)) for values in zip(*texts, strict=True)]


def bounds_of(delta: DeltaTable, columns: Sequence[str]) -> FileBounds:
    """Return the spans of columns in the log for each file, in the order of `files_of`."""
    found = pa.table(delta.get_add_actions(flatten=False))
    bounds: list[dict[str, Span]] = [{} for _ in range(found.num_rows)]
    if not {"min", "max"} <= set(found.column_names):
        return bounds
    least, most = (found[name].combine_chunks() for name in ("min", "max"))
    for name in columns:
        index = least.type.get_field_index(name)
        if index < 0 or not is_bounded(least.type.field(index).type):
            continue
        low, high = (numbers(bound.field(name)).to_pylist() for bound in (least, most))
        for file, span in zip(bounds, zip(low, high, strict=True), strict=True):
            if None not in span:
                file[name] = span
    return bounds


def at_version(place: Path, version: int) -> DeltaTable:
    """Open an old version."""
    try:
        return DeltaTable(str(place), version=version)
    except (DeltaError, OSError) as error:
        raise VersionGone(
            f"version {version} of the table at {place} cannot be read: {error}"
        ) from error


def _opened(place: Path) -> DeltaTable:
    try:
        return DeltaTable(str(place))
    except TableNotFoundError as error:
        raise TableLost(f"there is no Delta table at {place}") from error
