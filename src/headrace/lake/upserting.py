"""Rows by key into the files of a table: only files with a row that changes are written anew.

Key columns are read first, file by file; of a file without a key of the batch nothing else is. So
what is held in memory is the batch, the standing rows of its keys, and one record batch of a file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commits import AddedFile, Token
from headrace.lake.data_files import FILE_BYTES_MAX, DataFile, FileWriter, remove_files
from headrace.lake.errors import FilesChanged
from headrace.lake.key_hashes import KeyHashes
from headrace.lake.lineage import Lineage
from headrace.lake.reading import read_batches
from headrace.lake.schemas import conform
from headrace.lake.tables import Table
from headrace.lake.upserts import Upsert

FILE, ROW = "__FILE", "__ROW"
"""Where a standing row is: the number of its file in a list, and its own in the file."""
ATTEMPTS = 20
"""How often a merge is made anew because others have changed the table meanwhile."""
_SMALL = FILE_BYTES_MAX // 8
_SMALL_FILES_MAX = 16
"""So many small files a partition may have before a merge joins them: each is opened each time."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a table at some version, and how they are read; plain, so that it travels."""

    place: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[AddedFile, ...]

    @classmethod
    def of(cls, table: Table, version: int) -> "Files":
        files = tuple(table.files(version))
        return cls(str(table.place), table.schema_at(version), tuple(table.partition_by), files)

    def batches(self, number: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """The rows of one file."""
        file = self.files[number]
        return read_batches(Path(self.place), file, self.schema, self.partition_by, columns)

    def writer(self) -> FileWriter:
        return FileWriter(Path(self.place), self.schema, self.partition_by)


def upsert(
    table: Table, rows: pa.Table, how: Upsert, token: Token | None, lineage: Lineage | None
) -> int:
    """Merge rows that are at hand into a table, in one commit."""
    for _ in range(ATTEMPTS):
        if token is not None and table.has(token):
            return table.version
        version = table.version
        files = Files.of(table, version)
        arriving = conform(rows, how.arriving_schema(files.schema))
        if not arriving.num_rows:
            return table.append([], token, lineage)
        removed, added = _merge(files, arriving, how)
        try:
            return table.exchange(version, removed, added, token, lineage)
        except FilesChanged:
            remove_files(table.place, added)
    raise table.conflict("upsert", ATTEMPTS)


def standing_rows(
    files: Files, numbers: Iterable[int], columns: Sequence[str], hashes: KeyHashes
) -> Iterator[Any]:
    """The rows of some files that may have a key of the batch, each with where it is."""
    schema = pa.schema([files.schema.field(name) for name in columns])
    keys = ((number, files.batches(number, hashes.keys)) for number in numbers)
    for number, mask in hashes.looked_up(keys):
        if not pc.any(mask).as_py():
            continue
        first = 0
        for batch in files.batches(number, schema.names):
            chosen = mask.slice(first, batch.num_rows)
            places = pa.arange(first, first + batch.num_rows).filter(chosen)
            first += batch.num_rows
            if len(places):
                found = batch.filter(chosen)
                found = found.append_column(FILE, pa.repeat(pa.scalar(number), len(places)))
                yield found.append_column(ROW, places)


def standing_schema(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    fields = [schema.field(name) for name in columns]
    return pa.schema([*fields, pa.field(FILE, pa.int64()), pa.field(ROW, pa.int64())])


def rows_without(files: Files, number: int, removed: Any) -> Iterator[Any]:
    """The rows of a file but those at some places, which are sorted."""
    first = 0
    last = removed[-1].as_py() if len(removed) else -1
    is_gone = pc.is_in(pa.arange(0, last + 1), value_set=removed)
    for batch in files.batches(number):
        gone = is_gone.slice(first, batch.num_rows)
        first += batch.num_rows
        if len(gone):
            behind = pa.repeat(False, batch.num_rows - len(gone))
            batch = batch.filter(pc.invert(pa.concat_arrays([gone, behind])))
        if batch.num_rows:
            yield batch


def by_partition(files: Sequence[AddedFile], numbers: Iterable[int]) -> list[int]:
    """Files by number, those of one partition together, so that whoever joins them finds them so.

    A writer has few files open at a time: of partitions by turns it would make a file each time.
    """
    return sorted(numbers, key=lambda n: (sorted(map(repr, files[n].partition_values.items())), n))


def crowded(files: Sequence[AddedFile]) -> set[int]:
    """The small files of partitions that have many of them, by number."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[int]] = {}
    for number, file in enumerate(files):
        if file.size_bytes < _SMALL:
            partitions.setdefault(tuple(file.partition_values.items()), []).append(number)
    many = (numbers for numbers in partitions.values() if len(numbers) > _SMALL_FILES_MAX)
    return {number for numbers in many for number in numbers}


def _merge(files: Files, arriving: pa.Table, how: Upsert) -> tuple[list[AddedFile], list[DataFile]]:
    """Which files go and which come."""
    hashes = KeyHashes.of([arriving], how.keys)
    columns = how.looked_at
    found = standing_rows(files, range(len(files.files)), columns, hashes)
    standing = pa.Table.from_batches(list(found), standing_schema(files.schema, columns))
    merged = how.merged(arriving, standing)
    removed = places_by_file(standing.select([FILE, ROW]).take(merged.removed))
    rewritten = set(removed) | crowded(files.files)
    return [files.files[number] for number in rewritten], write_anew(
        files, merged.rows, removed, rewritten
    )


def places_by_file(places: pa.Table) -> dict[int, Any]:
    """The places of rows in each file, sorted."""
    ordered = places.combine_chunks().sort_by([(FILE, "ascending"), (ROW, "ascending")])
    counts = ordered.group_by([FILE], use_threads=False).aggregate([([], "count_all")])
    found: dict[int, Any] = {}
    first = 0
    for number, count in zip(
        counts[FILE].to_pylist(), counts["count_all"].to_pylist(), strict=True
    ):
        found[number] = ordered[ROW].slice(first, count).combine_chunks()
        first += count
    return found


def write_anew(
    files: Files, rows: pa.Table, removed: Mapping[int, Any], rewritten: Iterable[int]
) -> list[DataFile]:
    """Write what comes: small files joined with the new rows, large ones each by itself.

    A large file keeps the neighbours of its rows, so that its bounds stay as narrow as they were.
    """
    none = pa.array([], pa.int64())
    done: list[DataFile] = []
    with files.writer() as joined:
        try:
            joined.write(rows)
            for number in by_partition(files.files, rewritten):
                kept = rows_without(files, number, removed.get(number, none))
                if files.files[number].size_bytes < _SMALL:
                    for batch in kept:
                        joined.write(batch)
                else:
                    done += written_alone(files, kept)
        except BaseException:
            remove_files(Path(files.place), done)
            raise
        return done + joined.close()


def written_alone(files: Files, batches: Iterable[Any]) -> list[DataFile]:
    with files.writer() as writer:
        for batch in batches:
            writer.write(batch)
        return writer.close()
