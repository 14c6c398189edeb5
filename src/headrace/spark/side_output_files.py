"""Side outputs for records whose payload cannot be read, written by the tasks of the source.

A query may filter, join, group or explode its rows. With unreadable records among them, as rows of
nulls with an error, most queries would lose or count them. So the source removes them before any
query: its tasks write them to files of the quarantine table, which are invisible before their
commit, and leave a note with the ranges that they read and the files. The commit of the batch
reads the notes; their ranges show whether all of the batch was read, because Spark may skip records
that a query does not need.
"""

import datetime as dt
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pyarrow as pa

from headrace.lake.arrow_times import python_values
from headrace.lake.data_files import DataFile, FileWriter
from headrace.lake.quarantine import QUARANTINE_SCHEMA, QUARANTINED_AT, SOURCE_NAME, UNREADABLE
from headrace.spark.side_output import SideOutput, Span, Spans, UnreadableRecords


class Note(msgspec.Struct, frozen=True):
    """The spans that a task has read, and the files with its unreadable records."""

    spans: tuple[Span, ...]
    files: tuple[DataFile, ...] = ()


class SideOutputWriter:
    """Writes the unreadable records of one task."""

    def __init__(self, side_output: SideOutput, spans: Iterable[Span] = ()) -> None:
        """`spans` identify the task; without spans its unreadable records do."""
        self._side_output = side_output
        self._spans = tuple(spans)
        self._name = hashlib.sha256(msgspec.json.encode(self._spans))
        # One time for all rows, because redriven rows are identified by the time of rejection.
        now = dt.datetime.fromtimestamp(time.time(), dt.UTC)
        self._now = pa.scalar(now, pa.timestamp("us", "UTC"))
        self._writer = FileWriter(Path(side_output.place), QUARANTINE_SCHEMA)

    def put(self, records: UnreadableRecords) -> None:
        count = len(records.error)
        if not self._spans:
            self._name.update(repr([one.to_pylist() for one in records.identity]).encode())
        columns = {
            QUARANTINED_AT: pa.repeat(self._now, count),
            "table": pa.repeat(self._side_output.table, count),
            "flow": pa.repeat(self._side_output.flow, count),
            "rule": pa.repeat(UNREADABLE, count),
            "reason": records.error,
            "topic": records.topic,
            "partition": records.partition,
            "offset": records.offset,
            "payload": records.payload,
            "row": _known(records, self._side_output.source),
        }
        self._writer.write(
            pa.RecordBatch.from_arrays(
                [columns[field.name].cast(field.type) for field in QUARANTINE_SCHEMA],
                schema=QUARANTINE_SCHEMA,
            )
        )

    def finish(self) -> None:
        """Write the note atomically; a repeated task replaces it."""
        note = Note(self._spans, tuple(self._writer.close()))
        if not note.spans and not note.files:
            return
        folder = Path(self._side_output.notes)
        draft = folder / f".{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(note))
        os.replace(draft, folder / f"{self._name.hexdigest()[:32]}.json")

    def abort(self) -> None:
        self._writer.abort()


def notes_in(folder: Path) -> Iterator[Note]:
    """Yield the notes of finished tasks."""
    for path in sorted(folder.glob("*.json")):
        yield msgspec.json.decode(path.read_bytes(), type=Note)


def chosen(notes: Iterable[Note], spans: Spans | None = None) -> list[Note]:
    """Choose notes within these spans that do not overlap, the largest first.

    Notes overlap where a topic is read more than once for a batch: by readers at different offsets,
    or by jobs that were planned separately. `gaps` finds the records that only other notes have.
    """
    found: list[Note] = []
    taken: dict[tuple[str, int], list[Span]] = {}
    for note in sorted(notes, key=lambda one: -sum(span.end - span.first for span in one.spans)):
        if spans is not None and not all(_is_within(one, spans) for one in note.spans):
            continue
        places = [(one, taken.setdefault((one.topic, one.partition), [])) for one in note.spans]
        if any(
            one.first < other.end and other.first < one.end for one, at in places for other in at
        ):
            continue
        for one, at in places:
            at.append(one)
        found.append(note)
    return found


def _is_within(one: Span, spans: Spans) -> bool:
    """Return whether a task read for these spans, and not for an earlier batch.

    A range that begins at 0 and reaches into the span belongs to a recreated topic that has grown
    beyond the position in the old one.
    """
    first, end = spans.get(one.topic, {}).get(str(one.partition), (0, 0))
    return (first <= one.first or one.first == 0) and first < one.end <= end


def gaps(spans: Spans, notes: Iterable[Note]) -> list[Span]:
    """Return the parts of some spans that no note has, in order."""
    seen: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for note in notes:
        for one in note.spans:
            seen.setdefault((one.topic, one.partition), []).append((one.first, one.end))
    found = []
    for topic, partitions in spans.items():
        for partition, (at, end) in partitions.items():
            for first, last in sorted(seen.get((topic, int(partition)), ())):
                if at < min(first, end):
                    found.append(Span(topic, int(partition), at, min(first, end)))
                at = max(at, last)
            if at < end:
                found.append(Span(topic, int(partition), at, end))
    return found


def _known(records: UnreadableRecords, source: str) -> pa.Array:
    """Return the further columns of each record as JSON."""
    times = python_values(records.timestamp)
    by = {SOURCE_NAME: source} if source else {}
    rows = ({"timestamp": _iso(at), **by} for at in times)
    return pa.array([json.dumps(one) for one in rows], pa.string())


def _iso(moment: dt.datetime | str | None) -> str | None:
    """Format a time; one beyond Python's calendar is text already."""
    return moment.isoformat() if isinstance(moment, dt.datetime) else moment
