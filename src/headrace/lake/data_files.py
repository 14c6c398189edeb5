"""Data files of a table: written by whoever has the rows, committed later by one who has them all.

A writer may be a Spark task on another machine: it leaves Parquet files under the table's place,
which no reader sees, and hands back a description of each. Only a commit that lists them makes
them part of the table; files of a failed attempt stay unseen until vacuum takes them away.
"""

import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
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
from headrace.lake.far_times import date_text, days_of, micros_of, time_text
from headrace.lake.schemas import conform, type_text
from headrace.lake.statistics import Statistics

FILE_BYTES_MAX = 128 << 20
_GROUP_BYTES = 16 << 20
_GROUP_ROWS = 1 << 20
_OPEN_FILES_MAX = 32
"""Beyond it the partition that waited longest is closed; more of its rows begin a new file."""
PARTITION_YEARS = (-262_143, 262_142)
"""The wheel reads no partition of years beyond these, and then nothing of the table at all."""
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


def partition_texts(column: Any) -> list[str | None]:
    """Values of a partition column as Delta writes them in its log, years beyond 9999 as Spark.

    Delta takes an empty text for null.
    """
    of = column.type
    if pa.types.is_date(of):
        days = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if one is None else date_text(one) for one in days]
    if pa.types.is_timestamp(of):
        micros = column.cast(pa.timestamp("us", of.tz)).cast(pa.int64()).to_pylist()
        return [None if one is None else _time_text(one) for one in micros]
    return [_plain_text(one) for one in column.to_pylist()]


def partition_array(text: str | None, of: pa.DataType, rows: int) -> pa.Array:
    """A partition's value out of the log, once for each row."""
    if text is None or (text == "" and not pa.types.is_binary(of)):
        return pa.nulls(rows, of)
    if pa.types.is_timestamp(of):
        micros = pa.scalar(micros_of(text), pa.int64()).cast(pa.timestamp("us", of.tz))
        return pa.repeat(micros.cast(of), rows)
    if pa.types.is_date32(of):
        return pa.repeat(pa.scalar(days_of(text), pa.int32()).cast(of), rows)
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
    distinct = keys.group_by(list(by)).aggregate([]).select(list(by))
    texts = list(zip(*(_named(distinct[name], name) for name in by), strict=True))
    if len(texts) == 1:
        yield texts[0], table
        return
    for number, named in enumerate(texts):
        mask = None
        for name in by:
            column, value = keys.column(name), distinct[name][number]
            same = pc.equal(column, value) if value.is_valid else pc.is_null(column)
            mask = same if mask is None else pc.and_kleene(mask, same)
        yield named, table.filter(mask)


def _named(column: Any, name: str) -> list[str | None]:
    """The texts of a partition column, if every reader understands them."""
    texts = partition_texts(column)
    if pa.types.is_temporal(column.type):
        for text in filter(None, texts):
            year = int(text[: text.index("-", 1)])
            if not PARTITION_YEARS[0] <= year <= PARTITION_YEARS[1]:
                raise IncompatibleSchema(
                    f"column {name} has the value {text}, by which no table can be partitioned:"
                    " years are at most six digits, up to 262142. Let an expectation drop or"
                    " quarantine such rows; a time in the wrong unit (milliseconds for seconds) is"
                    " the usual cause"
                )
    return texts


def _time_text(micros: int) -> str:
    return time_text(micros, separator=" ", timespec="microseconds")


def _plain_text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str) -> str:
    """Only ASCII is escaped: Hive's way knows no others, and Spark takes them apart."""
    return "".join(c if c in _UNESCAPED or c > "\x7f" else f"%{ord(c):02X}" for c in text)


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
