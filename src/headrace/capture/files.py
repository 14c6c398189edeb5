"""Files of captured records, in Avro or Parquet: hidden while written, renamed when complete.

Keys, values and headers are unchanged bytes. Any reader of Avro container files or Parquet, such as
Spark, reads the files.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Message

from headrace.capture.places import temporary_name
from headrace.runtime.files import fsync_path
from headrace.serdes.avro.containers import ContainerWriter
from headrace.serdes.avro.parsing import parse

ROW_GROUP_BYTES = 16 << 20
"""Size of a Parquet row group, which is buffered in memory."""

RECORD_OVERHEAD_BYTES = 32
HEADER_OVERHEAD_BYTES = 8

AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Record",
    "namespace": "headrace.capture",
    "fields": [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
        {
            "name": "headers",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Header",
                    "fields": [
                        {"name": "key", "type": "string"},
                        {"name": "value", "type": ["null", "bytes"]},
                    ],
                },
            },
        },
    ],
}
PARQUET_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])),
        ),
    ]
)


class Format(Protocol):
    """Writes records into an open file."""

    @property
    def waiting_bytes(self) -> int:
        """Estimated size of records that are not in the file yet."""
        ...

    def write(self, records: Sequence[Message]) -> None: ...

    def end(self) -> None:
        """Write buffered records and the footer, if the format has one."""
        ...


class AvroFormat:
    """An Avro container file: the schema, then compressed blocks."""

    def __init__(self, file: BinaryIO) -> None:
        self._writer = ContainerWriter(file, parse(json.dumps(AVRO_SCHEMA)))

    @property
    def waiting_bytes(self) -> int:
        return self._writer.waiting_bytes

    def write(self, records: Sequence[Message]) -> None:
        for record in records:
            self._writer.write(fields_of(record))

    def end(self) -> None:
        self._writer.flush()


class ParquetFormat:
    """A Parquet file: row groups by columns."""

    def __init__(self, file: BinaryIO) -> None:
        self.waiting_bytes = 0
        self._waiting: list[Message] = []
        self._writer = pq.ParquetWriter(file, PARQUET_SCHEMA, compression="zstd")

    def write(self, records: Sequence[Message]) -> None:
        self._waiting += records
        self.waiting_bytes += sum(map(size_of, records))
        if self.waiting_bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def end(self) -> None:
        if self._waiting:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        records = self._waiting
        columns = [
            [record.topic() for record in records],
            [record.partition() for record in records],
            [record.offset() for record in records],
            [timestamp_of(record) for record in records],
            [record.key() for record in records],
            [record.value() for record in records],
            [headers_of(record) for record in records],
        ]
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, PARQUET_SCHEMA, strict=True)
        ]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=PARQUET_SCHEMA))
        self._waiting = []
        self.waiting_bytes = 0


FORMATS: dict[str, Callable[[BinaryIO], Format]] = {"avro": AvroFormat, "parquet": ParquetFormat}


class CaptureFile:
    """One file being written."""

    def __init__(self, folder: Path, first_offset: int, suffix: str) -> None:
        make_folders(folder)
        self._folder = folder
        self._temporary = folder / temporary_name(first_offset, suffix)
        self._file = open(self._temporary, "wb")  # noqa: SIM115  # Closed by complete and abort.
        self._format = FORMATS[suffix](self._file)

    @property
    def size_bytes(self) -> int:
        """Estimated size of the complete file."""
        return self._file.tell() + self._format.waiting_bytes

    def write(self, records: Sequence[Message]) -> None:
        self._format.write(records)

    def complete(self, name: str) -> Path:
        """Sync and rename the file, so that after a power cut it is complete or absent."""
        self._format.end()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        path = self._folder / name
        os.rename(self._temporary, path)
        fsync_path(str(self._folder))
        return path

    def abort(self) -> None:
        """Remove the file and drop buffered records."""
        self._temporary.unlink(missing_ok=True)
        try:
            self._file.close()
        except OSError:
            return  # A full disk rejects the buffered bytes of the removed file.


def make_folders(folder: Path) -> None:
    """Create a folder and its missing parents, synced against a power cut."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    fsync_path(str(folder.parent))


def fields_of(record: Message) -> dict[str, Any]:
    return {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp_of(record),
        "key": record.key(),
        "value": record.value(),
        "headers": headers_of(record),
    }


def timestamp_of(record: Message) -> int:
    return max(record.timestamp()[1], 0)


def headers_of(record: Message) -> list[dict[str, Any]]:
    found = cast(list[tuple[str, Any]], record.headers() or [])
    return [{"key": key, "value": value} for key, value in found]


def size_of(record: Message) -> int:
    """Estimate the size of a record with headers before compression."""
    size = len(record.value() or b"") + len(record.key() or b"") + RECORD_OVERHEAD_BYTES
    headers = cast(list[tuple[str, Any]], record.headers() or [])
    return size + sum(
        len(key) + len(value or b"") + HEADER_OVERHEAD_BYTES for key, value in headers
    )
