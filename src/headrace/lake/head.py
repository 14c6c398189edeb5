"""What a table is now: version, schema and tokens, followed through its log commit by commit.

A pipeline asks this before every micro-batch. The wheel reads the whole list of files to answer;
following the commits costs one look for the next file, however large the table has become.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError

from headrace.lake.commits import AddedFile, Commit, CommitLog, Token
from headrace.lake.errors import TableLost, UnsupportedTable, VersionGone
from headrace.lake.key_bounds import FileBounds, Span, is_bounded, numbers
from headrace.lake.metadata import FEATURES_LEVEL
from headrace.lake.partitions import partition_texts

_FEATURES = {"appendOnly", "invariants", "timestampNtz"}
"""What a table may ask of its writers; of these we never switch on invariants."""
_BEHIND_MAX = 64
"""With more new commits than that, the newest checkpoint is the quicker way."""


class Head:
    """The newest known state of a table; `follow` brings it up to date."""

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
        """Take in what was committed since the last look.

        The next commit may be missing because it was cleaned up, not because it was never made:
        then there is a checkpoint that is newer than what is known here.
        """
        while self.log.has(self.version + 1):
            try:
                commit = self.log.read(self.version + 1)
            except VersionGone:
                break  # Cleaned up since the line above.
            self._apply(commit)
        if self.log.last_checkpoint() > self.version:
            self._open()

    def has(self, token: Token) -> bool:
        """Whether the batch was committed, as far as is known."""
        newest = self.last_batch(token.writer)
        return newest is not None and newest >= token.batch

    def last_batch(self, writer: str) -> int | None:
        """The newest batch of a writer that was committed, as far as is known."""
        if writer not in self._tokens:
            self._tokens[writer] = self._delta.transaction_version(writer)
        return self._tokens[writer]

    def delta(self) -> DeltaTable:
        """The wheel's view of exactly this version, with all files."""
        if self.version - self._delta.version() > _BEHIND_MAX:
            self._delta = _opened(self._place)
        elif self._delta.version() < self.version:
            self._delta.update_incremental()
        if self._delta.version() != self.version:
            self._delta = at_version(self._place, self.version)
        return self._delta

    def check_writable(self) -> None:
        """Refuse a table that asks its writers for what we do not know."""
        protocol = self._delta.protocol()
        asked = set(protocol.writer_features or ())
        level = protocol.min_writer_version
        if level <= 2 or (level == FEATURES_LEVEL and asked <= _FEATURES):
            return
        what = ", ".join(sorted(asked - _FEATURES)) or f"writer version {level}"
        raise UnsupportedTable(
            f"the table at {self._place} asks its writers for {what}, which is not known here;"
            " use a table without it"
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
    """A Delta schema in Arrow's types, without metadata."""
    return pa.schema(schema.to_arrow()).remove_metadata()


def canonical(schema: pa.Schema) -> pa.Schema:
    """The schema as it comes back out of Delta's log, names inside lists and maps included."""
    return arrow_schema(DeltaSchema.from_arrow(schema))


def files_of(delta: DeltaTable) -> list[AddedFile]:
    """The files of a version; which commit they came with is not looked up."""
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
    """The partition of each file, as the log has it."""
    names = [field.name for field in column.type]
    texts = [partition_texts(values) for values in column.combine_chunks().flatten()]
    return [dict(zip(names, values, strict=True)) for values in zip(*texts, strict=True)]


def bounds_of(delta: DeltaTable, columns: Sequence[str]) -> FileBounds:
    """Of each file, in the order of `files_of`, the spans of columns that the log tells."""
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
    """The wheel's view of an old version."""
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
