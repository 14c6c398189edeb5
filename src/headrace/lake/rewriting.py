"""Files rewritten without a change to the rows: small ones joined, columns widened.

Readers that follow the table pass such commits over. A rewritten file's name tells from which
commits its rows came, so that `_commit_version` outlives it: exact where it has rows of one
commit, else the last one's; and rows stay in the order in which they came. For a lambda pipeline
the commit is exact as well, as long as only commits that the batch layer has covered are joined;
`Lake.optimize` sees to it. What a repeated batch may take back is not joined either.

Widening rewrites too, although Delta knows types that widen in place: that is a feature which
many readers of Delta tables do not have.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pyarrow as pa

from headrace.lake.commits import AddedFile, additions, removals
from headrace.lake.data_files import FILE_BYTES_MAX, DataFile, FileWriter, label_of
from headrace.lake.errors import VersionGone
from headrace.lake.head import Head, canonical
from headrace.lake.metadata import changed_metadata, is_append_only
from headrace.lake.reading import read_batches
from headrace.lake.schemas import evolution
from headrace.lake.tables import Optimized, Table

SMALL = FILE_BYTES_MAX * 3 // 4
"""Larger files are left as they are."""
_COMMIT_BYTES = 1 << 30
"""So much is rewritten before it is committed, so that what was done is not lost."""
_COMMIT_FILES = 1_000


def optimize(table: Table, up_to_version: int | None = None) -> Optimized:
    """Join small files of each partition, of those whose rows came up to a version."""
    newest = table.version
    files = [
        file
        for file in table.files_as_arrived(newest)
        if up_to_version is None or file.version <= up_to_version
    ]
    done = Optimized()
    for portion in _portions(_settled(table, joinable(files))):
        done = _add(done, _join(table, portion))
    return done


def _settled(table: Table, groups: Sequence[list[AddedFile]]) -> list[list[AddedFile]]:
    """Groups without what `Table.amend` may yet take back: the newest batch of each writer.

    Among the rows of others, those of a batch that comes again would not be found any more. What
    is on both sides of it is not joined either, for the order. In a table that only grows nothing
    is taken back.
    """
    if is_append_only(table.properties):
        return list(groups)
    versions = {file.version for group in groups for file in group}
    amendable = {version for version in versions if _is_amendable(table, version)}
    parts = (
        (is_left_alone, list(files))
        for group in groups
        for is_left_alone, files in groupby(group, lambda file: file.version in amendable)
    )
    return [files for is_left_alone, files in parts if not is_left_alone and len(files) > 1]


def _is_amendable(table: Table, version: int) -> bool:
    try:
        tokens = table.history.commit(version).tokens
    except VersionGone:
        return False  # Its batch came longer ago than the log reaches.
    return any(table.last_batch(token.writer) == token.batch for token in tokens)


def joinable(
    files: Sequence[AddedFile], file_bytes_max: int = FILE_BYTES_MAX, small: int = SMALL
) -> list[list[AddedFile]]:
    """Groups of small files of one partition, neighbours in time, that make one file each.

    A group does not reach across a large file, so that rows stay in the order in which they came;
    that of files of one commit is the order in which they are given.
    """
    partitions: dict[tuple[tuple[str, str | None], ...], list[AddedFile]] = {}
    for file in sorted(files, key=lambda one: one.version):
        partitions.setdefault(tuple(file.partition_values.items()), []).append(file)
    groups: list[list[AddedFile]] = []
    for members in partitions.values():
        group: list[AddedFile] = []
        room = file_bytes_max
        for file in members:
            if file.size_bytes > room or file.size_bytes >= small:
                groups.append(group)
                group, room = [], file_bytes_max
            if file.size_bytes < small:
                group.append(file)
                room -= file.size_bytes
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def evolve(table: Table, schema: pa.Schema) -> int:
    """Change the schema by its rules; files with narrower columns are rewritten on the way."""
    rewritten: dict[str, list[DataFile]] = {}

    def plan(head: Head) -> Iterable[Mapping[str, Any]]:
        change = evolution(head.schema, schema)
        if not change.is_change:
            return []
        becomes = canonical(change.schema)
        actions = list(changed_metadata(head.delta(), becomes, {}))
        if change.widened:
            old = table.snapshot(head.version)
            for file in old:
                if file.path not in rewritten:
                    rewritten[file.path] = _rewritten(table, [file], becomes)
            new = [one for file in old for one in rewritten[file.path]]
            actions += [*additions(new, data_change=False), *removals(old, data_change=False)]
        return actions

    return table.change("evolve", plan)


def _join(table: Table, groups: Sequence[Sequence[AddedFile]]) -> Optimized:
    joined = [_rewritten(table, group, table.schema) for group in groups]
    done = Optimized()

    def plan(head: Head) -> Iterable[Mapping[str, Any]]:
        """Only groups whose files are all still there; others have changed what they held."""
        nonlocal done
        done = Optimized()
        standing = {file.path for file in table.files(head.version)}
        actions: list[Mapping[str, Any]] = []
        for group, files in zip(groups, joined, strict=True):
            if all(file.path in standing for file in group):
                actions += additions(files, data_change=False)
                actions += removals(group, data_change=False)
                done = _add(done, _summary(group, files))
        return actions

    table.change("optimize", plan)
    return done


def _rewritten(table: Table, group: Sequence[AddedFile], schema: pa.Schema) -> list[DataFile]:
    labels = [label_of(file.path) or (file.version, file.version) for file in group]
    versions = (min(low for low, _ in labels), max(high for _, high in labels))
    by = table.partition_by
    with FileWriter(table.place, schema, by, versions=versions) as writer:
        for file in group:
            for batch in read_batches(table.place, file, schema, by):
                writer.write(batch)
        return writer.close()


def _portions(groups: Sequence[list[AddedFile]]) -> Iterator[list[list[AddedFile]]]:
    portion: list[list[AddedFile]] = []
    size_bytes = files = 0
    for group in groups:
        portion.append(group)
        size_bytes += sum(file.size_bytes for file in group)
        files += len(group)
        if size_bytes >= _COMMIT_BYTES or files >= _COMMIT_FILES:
            yield portion
            portion, size_bytes, files = [], 0, 0
    if portion:
        yield portion


def _summary(group: Sequence[AddedFile], files: Sequence[DataFile]) -> Optimized:
    return Optimized(
        files_before=len(group),
        files_after=len(files),
        bytes_before=sum(file.size_bytes for file in group),
        bytes_after=sum(file.size_bytes for file in files),
    )


def _add(one: Optimized, other: Optimized) -> Optimized:
    return replace(
        one,
        files_before=one.files_before + other.files_before,
        files_after=one.files_after + other.files_after,
        bytes_before=one.bytes_before + other.bytes_before,
        bytes_after=one.bytes_after + other.bytes_after,
    )
