"""Data files of a table: written by whoever has the rows, committed later by one who has them all.

A writer may be a Spark task on another machine: it leaves Parquet files under the table's place,
which no reader sees, and hands back a description of each. Only a commit that lists them makes
them part of the table; files of a failed attempt stay unseen until vacuum takes them away.
"""

import datetime as dt
import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from string import ascii_letters, digits
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.lake.errors import IncompatibleSchema, WriteFailed
from headrace.lake.schemas import conform, type_text
from headrace.lake.statistics import Statistics

FILE_BYTES_MAX = 128 << 20
_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 1 << 20
_OPEN_FILES_MAX = 32
"""Beyond it the partition that waited longest is closed; more of its rows begin a new file."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_FOLDER_BYTES_MAX = 255
_UNESCAPED = frozenset(ascii_letters + digits + " !$&()+,-.;@_~")
_LABEL = re.compile(r"part-v(\d+)-v(\d+)-[0-9a-f]{32}\.zstd\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written file that no commit has listed yet; plain, so that it travels as JSON or pickle."""

    path: str
    """Relative to the table's place."""
    size_bytes: int
    rows: int
    partition_values: dict[str, str | None] = field(default_factory=dict)
    stats: str = ""
    """Delta's statistics of the file, as JSON."""
    modified_ms: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


class FileWriter:
    """Writes rows into Parquet files under a table's place, a folder for each partition.

    With `versions` the files' names say which commits their rows come from, for rewritten files:
    see `label_of`.
    """

    def __init__(
        self,
        place: Path | str,
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        *,
        file_bytes_max: int = FILE_BYTES_MAX,
        versions: tuple[int, int] | None = None,
    ) -> None:
        self._place = Path(place)
        self._schema = schema
        self._partition_by = tuple(partition_by)
        self._stored = pa.schema([f for f in schema if f.name not in self._partition_by])
        self._file_bytes_max = file_bytes_max
        self._prefix = "part" if versions is None else f"part-v{versions[0]}-v{versions[1]}"
        self._open: OrderedDict[tuple[str | None, ...], _OpenFile] = OrderedDict()
        self._done: list[DataFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abort()

    def write(self, batch: Any) -> None:
        """Take a record batch or table with columns of the schema, in any order."""
        rows = conform(batch, self._schema)
        try:
            for values, part in _split(rows, self._partition_by):
                self._write_part(values, part)
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> list[DataFile]:
        """Finish all files; what it returns is what a commit needs."""
        try:
            while self._open:
                self._finish(next(iter(self._open)))
        except OSError as error:
            raise self._failed(error) from error
        return self._done

    def abort(self) -> None:
        """Remove what was written."""
        written = [file.path for file in self._done]
        written += [one.path for one in self._open.values()]
        for one in self._open.values():
            one.discard()
        for path in written:
            (self._place / path).unlink(missing_ok=True)
        self._open.clear()
        self._done.clear()

    def _write_part(self, values: tuple[str | None, ...], rows: Any) -> None:
        if not rows.num_rows:
            return
        file = self._open.get(values)
        if file is None:
            if len(self._open) >= _OPEN_FILES_MAX:
                self._finish(next(iter(self._open)))
            file = self._begin(values)
        self._open.move_to_end(values)
        file.write(rows.select(self._stored.names))
        if file.size_bytes >= self._file_bytes_max:
            self._finish(values)

    def _begin(self, values: tuple[str | None, ...]) -> "_OpenFile":
        folders = map(folder_of, self._partition_by, values)
        path = "/".join([*folders, f"{self._prefix}-{uuid4().hex}.zstd.parquet"])
        file = _OpenFile(self._place, path, self._stored)
        self._open[values] = file
        return file

    def _finish(self, values: tuple[str | None, ...]) -> None:
        partition_values = dict(zip(self._partition_by, values, strict=True))
        self._done.append(self._open[values].close(partition_values))
        del self._open[values]

    def _failed(self, error: OSError) -> WriteFailed:
        self.abort()
        return WriteFailed(
            f"a file of the table at {self._place} could not be written: {error}. Nothing was"
            " committed; make room or mend the disk, and run again"
        )


def remove_files(place: Path, files: Iterable[DataFile]) -> None:
    """Remove files that no commit will list; a crash before leaves them to vacuum."""
    for file in files:
        (place / file.path).unlink(missing_ok=True)


def label_of(path: str) -> tuple[int, int] | None:
    """The first and last commit whose rows a rewritten file holds; None for others."""
    found = _LABEL.fullmatch(path.rpartition("/")[2])
    return (int(found[1]), int(found[2])) if found else None


def folder_of(name: str, value: str | None) -> str:
    """The folder of a partition, named as Hive, Spark and DuckDB read it.

    A value that is too long for a folder's name gets a shorter one; the log has the value.
    """
    folder = f"{_escaped(name)}={_NULL_PARTITION if value is None else _escaped(value)}"
    if len(folder.encode()) <= _FOLDER_BYTES_MAX:
        return folder
    return f"{_escaped(name)[:64]}-{sha256(folder.encode()).hexdigest()}"


def partition_text(value: Any) -> str | None:
    """A partition's value as Delta writes it in its log; Delta takes an empty text for null."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC) if value.tzinfo else value
        return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    return str(value)


def partition_array(text: str | None, of: pa.DataType, rows: int) -> pa.Array:
    """A partition's value out of the log, once for each row."""
    if text is None or (text == "" and not pa.types.is_binary(of)):
        return pa.nulls(rows, of)
    if pa.types.is_timestamp(of):
        moment = dt.datetime.fromisoformat(text)
        if of.tz and moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return pa.repeat(pa.scalar(moment, of), rows)
    return pa.repeat(pa.scalar(text).cast(of), rows)


class _OpenFile:
    """One Parquet file in the making; rows gather until they fill a row group."""

    def __init__(self, place: Path, path: str, schema: pa.Schema) -> None:
        self.path = path
        self._target = place / path
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._schema = schema
        self._footer: list[Any] = []
        self._sink = pa.OSFile(str(self._target), "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            coerce_timestamps="us",
            metadata_collector=self._footer,
        )
        self._statistics = Statistics(schema)
        self._gathered: list[Any] = []
        self._gathered_bytes = 0
        self._gathered_rows = 0

    @property
    def size_bytes(self) -> int:
        return int(self._sink.tell())

    def write(self, rows: Any) -> None:
        self._statistics.observe(rows)
        self._gathered += rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._gathered_bytes += rows.nbytes
        self._gathered_rows += rows.num_rows
        if self._gathered_bytes >= _GROUP_BYTES or self._gathered_rows >= _GROUP_ROWS:
            self._flush()

    def close(self, partition_values: dict[str, str | None]) -> DataFile:
        self._flush()
        self._writer.close()
        self._sink.close()
        self._sync()
        footer = self._footer[0]
        return DataFile(
            path=self.path,
            size_bytes=self._target.stat().st_size,
            rows=footer.num_rows,
            partition_values=partition_values,
            stats=self._statistics.of(footer),
            modified_ms=time.time_ns() // 1_000_000,
        )

    def discard(self) -> None:
        """Let go of a file that is not wanted; a full disk may refuse even its footer."""
        self._gathered.clear()
        for part in (self._writer, self._sink):
            # A writer that failed once has no footer, about which Arrow complains in its own way.
            with suppress(OSError, RuntimeError):
                part.close()

    def _flush(self) -> None:
        if self._gathered:
            group = pa.Table.from_batches(self._gathered, schema=self._schema)
            self._writer.write_table(group, row_group_size=_GROUP_ROWS)
            self._gathered.clear()
            self._gathered_bytes = self._gathered_rows = 0

    def _sync(self) -> None:
        """Bytes first, commit second: a power cut must not leave a commit of what is not there."""
        descriptor = os.open(self._target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _split(rows: Any, by: Sequence[str]) -> Iterator[tuple[tuple[str | None, ...], Any]]:
    """The rows of each partition, in their order."""
    if not by:
        yield (), rows
        return
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    keys = table.select(list(by))
    distinct = keys.group_by(list(by)).aggregate([]).to_pylist()
    if len(distinct) == 1:
        yield _texts(distinct[0], by), table
        return
    for values in distinct:
        mask = None
        for name in by:
            column = keys.column(name)
            value = values[name]
            same = pc.is_null(column) if value is None else pc.equal(column, _scalar(value, column))
            mask = same if mask is None else pc.and_kleene(mask, same)
        yield _texts(values, by), table.filter(mask)


def _escaped(text: str) -> str:
    """Only ASCII is escaped: Hive's way knows no others, and Spark takes them apart."""
    return "".join(c if c in _UNESCAPED or c > "\x7f" else f"%{ord(c):02X}" for c in text)


def _scalar(value: Any, column: Any) -> Any:
    return pa.scalar(value, column.type)


def _texts(values: Mapping[str, Any], by: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(partition_text(values[name]) for name in by)


def check_partition_columns(schema: pa.Schema, by: Sequence[str]) -> None:
    """Refuse columns whose values are no names of folders."""
    for name in by:
        if name not in schema.names:
            raise IncompatibleSchema(
                f"there is no column {name} to partition by; there are {', '.join(schema.names)}"
            )
        of = schema.field(name).type
        if pa.types.is_nested(of) or pa.types.is_binary(of) or pa.types.is_floating(of):
            raise IncompatibleSchema(
                f"column {name} is {type_text(of)}, by which a table cannot be partitioned; take a"
                " column of text, numbers or dates"
            )
    if by and len(by) == len(schema):
        raise IncompatibleSchema("a table needs a column that it is not partitioned by")
