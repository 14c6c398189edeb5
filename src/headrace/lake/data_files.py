"""Data files of a table: written first, by one or many processes, and committed together later.

A writer may be a Spark task on another machine: it leaves Parquet files in the table's folder and
returns a description of each. Readers see them after a commit that lists them; the files of a
failed attempt stay invisible until vacuum removes them.
"""

import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.lake.errors import WriteFailed
from headrace.lake.partitions import Values, folder_of, rows_by_partition
from headrace.lake.schemas import conform
from headrace.lake.statistics import Statistics

FILE_BYTES_MAX = 128 << 20
_ROUND_BYTES = 16 << 20
_PARTITIONED_ROUND_BYTES = 64 << 20
"""Larger than without partitions, because rows of very many partitions may come in any order."""
_ROUND_ROWS = 1 << 20
_OPEN_FILES_MAX = 128
"""Beyond this the least recently used file is closed; more rows of its partition begin another."""
_LABEL = re.compile(r"part-v(\d+)-v(\d+)-[0-9a-f]{32}\.zstd\.parquet")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written file before its commit; plain data for JSON and pickle."""

    path: str
    """Relative to the table's place."""
    size_bytes: int
    rows: int
    partition_values: dict[str, str | None] = field(default_factory=dict)
    stats: str = ""
    """Delta's statistics as JSON."""
    modified_ms: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


class FileWriter:
    """Writes rows into Parquet files in a table's folder, with a subfolder for each partition.

    Rows are buffered and written in rounds; each round adds one row group per partition. With
    `versions`, the names of rewritten files contain the commits of their rows: see `label_of`.
    """

    def __init__(
        self,
        place: Path | str,
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        *,
        file_bytes_max: int = FILE_BYTES_MAX,
        round_bytes: int | None = None,
        versions: tuple[int, int] | None = None,
    ) -> None:
        self._place = Path(place)
        self._schema = schema
        self._partition_by = tuple(partition_by)
        self._stored = pa.schema([f for f in schema if f.name not in self._partition_by])
        self._file_bytes_max = file_bytes_max
        self._prefix = "part" if versions is None else f"part-v{versions[0]}-v{versions[1]}"
        usual = _PARTITIONED_ROUND_BYTES if partition_by else _ROUND_BYTES
        self._round_bytes = usual if round_bytes is None else round_bytes
        self._gathered: list[Any] = []
        self._gathered_bytes = self._gathered_rows = 0
        self._open: OrderedDict[Values, _OpenFile] = OrderedDict()
        self._done: list[DataFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abort()

    def write(self, batch: Any) -> None:
        """Add a record batch or table with columns of the schema, in any order."""
        rows = conform(batch, self._schema)
        self._gathered += rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._gathered_bytes += rows.nbytes
        self._gathered_rows += rows.num_rows
        if self._gathered_bytes >= self._round_bytes or self._gathered_rows >= _ROUND_ROWS:
            self._write_round()

    def close(self) -> list[DataFile]:
        """Finish all files and return them for a commit."""
        self._write_round()
        try:
            while self._open:
                self._finish(next(iter(self._open)))
        except OSError as error:
            raise self._failed(error) from error
        return self._done

    def abort(self) -> None:
        """Remove all written files."""
        written = [file.path for file in self._done]
        written += [one.path for one in self._open.values()]
        for one in self._open.values():
            one.discard()
        for path in written:
            (self._place / path).unlink(missing_ok=True)
        self._open.clear()
        self._done.clear()
        self._gathered.clear()

    def _write_round(self) -> None:
        rows = pa.Table.from_batches(self._gathered, schema=self._schema)
        self._gathered.clear()
        self._gathered_bytes = self._gathered_rows = 0
        if not rows.num_rows:
            return
        try:
            for values, part in rows_by_partition(rows, self._partition_by):
                self._write_part(values, part)
        except OSError as error:
            raise self._failed(error) from error

    def _write_part(self, values: Values, rows: Any) -> None:
        file = self._open.get(values)
        if file is None:
            if len(self._open) >= _OPEN_FILES_MAX:
                self._finish(next(iter(self._open)))
            file = self._begin(values)
        self._open.move_to_end(values)
        file.write(rows.select(self._stored.names))
        if file.size_bytes >= self._file_bytes_max:
            self._finish(values)

    def _begin(self, values: Values) -> "_OpenFile":
        folders = map(folder_of, self._partition_by, values)
        path = "/".join([*folders, f"{self._prefix}-{uuid4().hex}.zstd.parquet"])
        file = _OpenFile(self._place, path, self._stored)
        self._open[values] = file
        return file

    def _finish(self, values: Values) -> None:
        partition_values = dict(zip(self._partition_by, values, strict=True))
        self._done.append(self._open[values].close(partition_values))
        del self._open[values]

    def _failed(self, error: OSError) -> WriteFailed:
        self.abort()
        return WriteFailed(
            f"a file of the table at {self._place} could not be written: {error}. Nothing was"
            " committed; free or repair the disk, and run again"
        )


def remove_files(place: Path, files: Iterable[DataFile]) -> None:
    """Remove files that will not be committed; after a crash vacuum does that."""
    for file in files:
        (place / file.path).unlink(missing_ok=True)


def label_of(path: str) -> tuple[int, int] | None:
    """Return the first and last commit of the rows of a rewritten file; None for other files."""
    found = _LABEL.fullmatch(path.rpartition("/")[2])
    return (int(found[1]), int(found[2])) if found else None


class _OpenFile:
    """A Parquet file that is being written."""

    def __init__(self, place: Path, path: str, schema: pa.Schema) -> None:
        self.path = path
        self._target = place / path
        self._target.parent.mkdir(parents=True, exist_ok=True)
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

    @property
    def size_bytes(self) -> int:
        return int(self._sink.tell())

    def write(self, rows: Any) -> None:
        """Write rows as one row group."""
        self._statistics.observe(rows)
        self._writer.write_table(rows, row_group_size=_ROUND_ROWS)

    def close(self, partition_values: dict[str, str | None]) -> DataFile:
        self._writer.close()
        self._sink.close()
        self._sync()
        footer, status = self._footer[0], self._target.stat()
        return DataFile(
            path=self.path,
            size_bytes=status.st_size,
            rows=footer.num_rows,
            partition_values=partition_values,
            stats=self._statistics.of(footer),
            modified_ms=status.st_mtime_ns // 1_000_000,
        )

    def discard(self) -> None:
        """Close an unwanted file; on a full disk even its footer may fail."""
        for part in (self._writer, self._sink):
            # Arrow raises RuntimeError where an earlier failure left no footer.
            with suppress(OSError, RuntimeError):
                part.close()

    def _sync(self) -> None:
        """Sync the bytes before the commit: a power cut must not leave a commit of missing rows."""
        descriptor = os.open(self._target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
