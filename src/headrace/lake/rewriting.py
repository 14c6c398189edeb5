"""Rewriting files without changing rows: small files are joined, columns are widened.

Readers that follow the table skip such commits. The name of a rewritten file has the commits of its
rows, so `_commit_version` survives: exact for rows of one commit, otherwise that of the last one.
Rows keep their order. For a lambda pipeline the commit stays exact because `Lake.optimize` joins
covered commits only. Batches that may be repeated and replaced are not joined either.

Widening rewrites files although Delta can widen types in place, because many readers of Delta
tables lack that feature.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import add
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.lake.commit_log import AddedFile, additions
from headrace.lake.data_files import FILE_BYTES_MAX, DataFile, FileWriter, label_of
from headrace.lake.errors import VersionGone
from headrace.lake.metadata import changed_metadata, is_append_only
from headrace.lake.reading import read_batches
from headrace.lake.schemas import evolution
from headrace.lake.snapshot import Snapshot, canonical
from headrace.lake.tables import Table

SMALL = FILE_BYTES_MAX * 3 // 4
"""Files from this size on are not joined."""
_COMMIT_BYTES = 1 << 30
"""The size of rewritten files per commit, so that an interrupted run keeps most of its work."""
_COMMIT_FILES = 1_000


class Optimized(NamedTuple):
    """The result of `optimize`."""

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def plus(self, other: "Optimized") -> "Optimized":
        return Optimized(*map(add, self, other))


def optimize(table: Table, up_to_version: int | None = None) -> Optimized:
    """Join the small files of each partition, up to the rows of a version."""
    newest = table.version
    files = [
        file
        for file in table.files_as_arrived(newest)
        if up_to_version is None or file.version <= up_to_version
    ]
    done = Optimized()
    for portion in _portions(_without_amendable(table, joinable(files))):
        done = done.plus(_join(table, portion))
    return done


def _without_amendable(table: Table, groups: Sequence[list[AddedFile]]) -> list[list[AddedFile]]:
    """Leave out files that `Table.amend` may still replace: the newest batch of each writer.

    Files on both sides of such a batch stay apart too, to keep the order of rows. Append-only
    tables are never amended.
    """
    if is_append_only(table.properties):
        return list(groups)
    versions = {file.version for group in groups for file in group}
    amendable = {version for version in versions if _is_amendable(table, version)}
    parts = (
        (is_amendable, list(files))
        for group in groups
        for is_amendable, files in groupby(group, lambda file: file.version in amendable)
    )
    return [files for is_amendable, files in parts if not is_amendable and len(files) > 1]


def _is_amendable(table: Table, version: int) -> bool:
    try:
        tokens = table.history.commit(version).tokens
    except VersionGone:
        return False  # The batch is older than the log.
    return any(table.last_batch(token.writer) == token.batch for token in tokens)


def joinable(
    files: Sequence[AddedFile], file_bytes_max: int = FILE_BYTES_MAX, small: int = SMALL
) -> list[list[AddedFile]]:
    """Group small files of one partition that are neighbours in time and fit into one file.

    A group does not reach across a large file, so that rows keep their order. Files of one commit
    keep the order in which they are given.
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
    """Evolve a table to hold rows of this schema: columns are added and widened.

    Widened columns rewrite the files.
    """
    rewritten: dict[str, list[DataFile]] = {}

    def plan(snapshot: Snapshot) -> Iterable[Mapping[str, Any]]:
        change = evolution(snapshot.schema, schema)
        if not change.is_change:
            return []
        becomes = canonical(change.schema)
        actions = list(changed_metadata(snapshot.delta(), becomes, {}))
        if change.widened:
            old = table.snapshot_files(snapshot.version)
            for file in old:
                if file.path not in rewritten:
                    rewritten[file.path] = _rewritten(table, [file], becomes)
            new = [one for file in old for one in rewritten[file.path]]
            actions += [
                *additions(new, data_change=False),
                *table.removals(old, data_change=False),
            ]
        return actions

    return table.change("evolve", plan)


def _join(table: Table, groups: Sequence[Sequence[AddedFile]]) -> Optimized:
    joined = [_rewritten(table, group, table.schema) for group in groups]
    done = Optimized()

    def plan(snapshot: Snapshot) -> Iterable[Mapping[str, Any]]:
        """Replace the groups whose files all still exist; the rows of others have changed."""
        nonlocal done
        done = Optimized()
        existing = {file.path for file in table.files(snapshot.version)}
        actions: list[Mapping[str, Any]] = []
        for group, files in zip(groups, joined, strict=True):
            if all(file.path in existing for file in group):
                actions += additions(files, data_change=False)
                actions += table.removals(group, data_change=False)
                done = done.plus(_summary(group, files))
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
