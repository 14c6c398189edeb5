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
"""More than where there is one partition: rows may be of very many, and come in any order."""
_ROUND_ROWS = 1 << 20
_OPEN_FILES_MAX = 128
"""Beyond it the partition that waited longest is closed; more of its rows begin a new file."""
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

    Rows gather in memory and are written in rounds: what a round has of a partition is one row
    group of its file.

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
        """Take a record batch or table with columns of the schema, in any order."""
        rows = conform(batch, self._schema)
        self._gathered += rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        self._gathered_bytes += rows.nbytes
        self._gathered_rows += rows.num_rows
        if self._gathered_bytes >= self._round_bytes or self._gathered_rows >= _ROUND_ROWS:
            self._write_round()

    def close(self) -> list[DataFile]:
        """Finish all files; what it returns is what a commit needs."""
        self._write_round()
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


class _OpenFile:
    """One Parquet file in the making."""

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
        """Put rows into a group of their own."""
        self._statistics.observe(rows)
        self._writer.write_table(rows, row_group_size=_ROUND_ROWS)

    def close(self, partition_values: dict[str, str | None]) -> DataFile:
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
        for part in (self._writer, self._sink):
            # A writer that failed once has no footer, about which Arrow complains in its own way.
            with suppress(OSError, RuntimeError):
                part.close()

    def _sync(self) -> None:
        """Bytes first, commit second: a power cut must not leave a commit of what is not there."""
        descriptor = os.open(self._target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
