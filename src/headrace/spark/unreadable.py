"""Records whose payload cannot be read: put aside by the task that finds it out.

A query may do anything with its rows: filter, join, group, explode. If a record that could not be
read were among them, as a row of nulls with an error, most queries would lose it or count it in.
So the source itself takes such records out, before any query: its tasks write them as files of the
quarantine table, which nobody sees before they are committed, and leave a note of what they read
and which files they wrote. Whoever commits the batch reads the notes, and knows by their ranges
whether all of the batch was looked at; Spark need not read what a query has no use for.
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

from headrace.lake.data_files import DataFile, FileWriter
from headrace.lake.far_times import python_values
from headrace.lake.quarantine import QUARANTINE_SCHEMA, QUARANTINED_AT, TOLD_BY, UNREADABLE
from headrace.spark.refuge import Refuge, Span, Spans, Unreadable


class Note(msgspec.Struct, frozen=True):
    """What a task has looked at, and the files with what it could not read of it."""

    spans: tuple[Span, ...]
    files: tuple[DataFile, ...] = ()


class PutAside:
    """What one task puts aside, as it goes; memory is bounded by what it is given at a time."""

    def __init__(self, refuge: Refuge, spans: Iterable[Span] = ()) -> None:
        """`spans` is what the task reads; one that cannot tell is known by what it puts aside."""
        self._refuge = refuge
        self._spans = tuple(spans)
        self._name = hashlib.sha256(msgspec.json.encode(self._spans))
        # One moment for all: redriven rows are known by the moments at which they were refused.
        now = dt.datetime.fromtimestamp(time.time(), dt.UTC)
        self._now = pa.scalar(now, pa.timestamp("us", "UTC"))
        self._writer = FileWriter(Path(refuge.place), QUARANTINE_SCHEMA)

    def put(self, records: Unreadable) -> None:
        count = len(records.error)
        if not self._spans:
            self._name.update(repr([one.to_pylist() for one in records.identity]).encode())
        columns = {
            QUARANTINED_AT: pa.repeat(self._now, count),
            "table": pa.repeat(self._refuge.table, count),
            "flow": pa.repeat(self._refuge.flow, count),
            "rule": pa.repeat(UNREADABLE, count),
            "reason": records.error,
            "topic": records.topic,
            "partition": records.partition,
            "offset": records.offset,
            "payload": records.payload,
            "row": _known(records, self._refuge.source),
        }
        self._writer.write(
            pa.RecordBatch.from_arrays(
                [columns[field.name].cast(field.type) for field in QUARANTINE_SCHEMA],
                schema=QUARANTINE_SCHEMA,
            )
        )

    def finish(self) -> None:
        """Tell what was looked at, whole; a task that is tried again tells it anew."""
        note = Note(self._spans, tuple(self._writer.close()))
        if not note.spans and not note.files:
            return
        folder = Path(self._refuge.notes)
        draft = folder / f".{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(note))
        os.replace(draft, folder / f"{self._name.hexdigest()[:32]}.json")

    def abort(self) -> None:
        self._writer.abort()


def notes_in(folder: Path) -> Iterator[Note]:
    """The notes of the tasks that have come to their end."""
    for path in sorted(folder.glob("*.json")):
        yield msgspec.json.decode(path.read_bytes(), type=Note)


def chosen(notes: Iterable[Note], spans: Spans | None = None) -> list[Note]:
    """Those notes that are of these spans, of which no two tell of the same record.

    Notes may overlap where a topic is read more than once for a batch: by readers that stand
    at different offsets, or by jobs that were planned one after the other. The larger is taken,
    and whatever the others know besides is found by `gaps`.
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
    """Whether a task read for these spans, and was not a late one of an earlier batch.

    One that began at 0 and goes into the span read a topic that was made anew, and has grown past
    where the old one was left.
    """
    first, end = spans.get(one.topic, {}).get(str(one.partition), (0, 0))
    return (first <= one.first or one.first == 0) and first < one.end <= end


def gaps(spans: Spans, notes: Iterable[Note]) -> list[Span]:
    """What of some spans no note tells of, in order."""
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


def _known(records: Unreadable, source: str) -> pa.Array:
    """What else is known of each record, as JSON."""
    times = python_values(records.timestamp)
    by = {TOLD_BY: source} if source else {}
    told = ({"timestamp": _iso(at), **by} for at in times)
    return pa.array([json.dumps(one) for one in told], pa.string())


def _iso(moment: dt.datetime | str | None) -> str | None:
    """A time as text; one that is beyond Python's calendar is so already."""
    return moment.isoformat() if isinstance(moment, dt.datetime) else moment
