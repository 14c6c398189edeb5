"""Merging rows by key into the files of a table; only files with changed rows are rewritten.

Key columns are read first, file by file; other columns only for files with a key of the batch. So
memory holds the batch, the existing rows of its keys, and one record batch of a file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.commit_log import AddedFile
from headrace.lake.data_files import FILE_BYTES_MAX, DataFile, remove_files
from headrace.lake.key_hashes import KeyHashes
from headrace.lake.reading import Files
from headrace.lake.upsert_decisions import Upsert

FILE, ROW = "__FILE", "__ROW"
"""Columns with the place of an existing row: the number of its file, and its row in the file."""
_SMALL = FILE_BYTES_MAX // 8
_SMALL_FILES_MAX = 16
"""A merge joins the small files of a partition beyond this number, as each merge opens them all."""


def existing_rows(
    files: Files, numbers: Iterable[int], columns: Sequence[str], hashes: KeyHashes
) -> Iterator[Any]:
    """Yield the rows of some files that may have a key of the batch, with FILE and ROW."""
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


def existing_schema(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    fields = [schema.field(name) for name in columns]
    return pa.schema([*fields, pa.field(FILE, pa.int64()), pa.field(ROW, pa.int64())])


def rows_without(files: Files, number: int, removed: Any) -> Iterator[Any]:
    """Yield the rows of a file except those at the given sorted positions."""
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
    """Sort the numbers of files by partition.

    A writer has few files open at a time, so alternating partitions would make many files.
    """
    return sorted(numbers, key=lambda n: (sorted(map(repr, files[n].partition_values.items())), n))


def crowded(files: Sequence[AddedFile]) -> set[int]:
    """Return the numbers of the small files in partitions that have many of them."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[int]] = {}
    for number, file in enumerate(files):
        if file.size_bytes < _SMALL:
            partitions.setdefault(tuple(file.partition_values.items()), []).append(number)
    many = (numbers for numbers in partitions.values() if len(numbers) > _SMALL_FILES_MAX)
    return {number for numbers in many for number in numbers}


def merged_files(
    files: Files, incoming: pa.Table, how: Upsert
) -> tuple[list[AddedFile], list[DataFile]]:
    """Return the removed files and the new ones."""
    hashes = KeyHashes.of([incoming], how.keys)
    columns = how.columns_read
    found = existing_rows(files, range(len(files.files)), columns, hashes)
    existing = pa.Table.from_batches(list(found), existing_schema(files.schema, columns))
    merged = how.merged(incoming, existing)
    removed = places_by_file(existing.select([FILE, ROW]).take(merged.removed))
    rewritten = set(removed) | crowded(files.files)
    return [files.files[number] for number in rewritten], write_files(
        files, merged.rows, removed, rewritten
    )


def places_by_file(places: pa.Table) -> dict[int, Any]:
    """Return the sorted positions of rows by file."""
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


def write_files(
    files: Files, rows: pa.Table, removed: Mapping[int, Any], rewritten: Iterable[int]
) -> list[DataFile]:
    """Write the new rows joined with the small files, and each large file alone.

    So the bounds of large files stay narrow.
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
