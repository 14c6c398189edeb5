"""Captures a topic into files, with each record in exactly one complete file.

A file gets its name when it is complete and on disk; only then the group's offset is committed.
After a crash the file names determine the next offset, and incomplete files are removed and their
records read again. Offsets are valid for one topic only, so the topic id is kept next to the files.
A recreated topic is rejected, and so is a log that ends before the captured offset.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from confluent_kafka import Message

from headrace.capture import places
from headrace.capture.files import CaptureFile, size_of
from headrace.capture.reading import PartitionReader
from headrace.capture.windows import Limits, Window, fitting, resume_at
from headrace.errors import HeadraceError
from headrace.protocol.uuids import ZERO, to_text
from headrace.runtime.files import DirectoryInUse, OpenFile, lock, replace_file

NEW_PARTITIONS_S = 30.0
"""Interval of checks for added partitions."""

Report = Callable[[str], None]


class CaptureError(HeadraceError):
    """The capture failed; no incomplete file is left behind."""


class TopicRecreated(CaptureError):
    """The files belong to a deleted topic; the topic of the same name has other records."""

    def __init__(self, topic: str, folder: str) -> None:
        super().__init__(
            f"topic {topic!r} was recreated after the first capture into {folder}, so its offsets "
            "belong to other records. Choose another directory with --to, or move this one away, "
            "to capture the new topic from its beginning"
        )


class LogTruncated(CaptureError):
    """The log ends before the captured offset; new records reuse captured offsets."""

    def __init__(self, topic: str, partition: int, captured: int, end: int, folder: str) -> None:
        super().__init__(
            f"{topic}-{partition} was captured up to offset {captured - 1} but ends at {end}: "
            "the log was truncated, by a restored backup or an unclean election, and its offsets "
            "belong to other records. Choose another --group, and another directory with --to or "
            f"move {folder} away, to capture the topic from its beginning"
        )


@dataclass(frozen=True, slots=True)
class Captured:
    """A completed file."""

    path: Path
    partition: int
    records: int
    next_offset: int


@dataclass(slots=True)
class PartitionCapture:
    """A partition with its next offset and its open file."""

    number: int
    next_offset: int | None
    silent_since_ms: int
    window: Window | None = None
    file: CaptureFile | None = None
    records: int = 0


@dataclass(slots=True)
class Capture:
    """Writes one topic below a directory, which it locks."""

    reader: PartitionReader
    directory: Path
    suffix: str
    limits: Limits
    report: Report
    done: Callable[[Captured], None]
    writes_empty: bool = False
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    files_completed: int = 0
    _partitions: dict[int, PartitionCapture] = field(default_factory=dict)
    _uncommitted: dict[int, int] = field(default_factory=dict)
    _lock: OpenFile | None = None
    _is_cut_off: bool = False

    def run(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        """Write records until stopped, or with `once` until the end of the topic."""
        self.reader.partitions()  # Before the lock, so that a missing topic leaves no directory.
        self._lock = self._locked()
        try:
            self._remove_torn()
            self._begin_new_partitions()
            self._write_whole(once=once, is_stopped=is_stopped)
            self._complete(list(self._partitions.values()))
            self._commit()
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise CaptureError(
                f"cannot write below {self.directory}: {what}; complete files stay, and the next "
                "run continues after them"
            ) from error
        finally:
            self._abort()

    def _write_whole(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        """Write, and complete the open files after an error: the topic may be deleted."""
        try:
            self._write_until(once=once, is_stopped=is_stopped)
        except HeadraceError:
            self._name_files(list(self._partitions.values()))
            raise

    def _write_until(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        look_again = time.monotonic() + NEW_PARTITIONS_S
        while not is_stopped():
            for partition, records in by_partition(self.reader.read()):
                self._append(self._partitions[partition], records)
            self._end_windows()
            self._report_outage()
            if once and self.reader.is_at_end:
                return
            if time.monotonic() >= look_again:
                self._begin_new_partitions()
                look_again = time.monotonic() + NEW_PARTITIONS_S

    def _append(self, partition: PartitionCapture, records: Sequence[Message]) -> None:
        """Write consecutive records of a partition into one or more files."""
        self._check_gap(partition, offset_of(records[0]))
        stamps = [(record.timestamp()[1], size_of(record)) for record in records]
        at = 0
        while at < len(records):
            hour = None if partition.window is None else partition.window.hour
            used = 0 if partition.file is None else partition.file.size_bytes
            count = fitting(stamps, at, hour, self.limits.size_bytes_max - used)
            if count:
                self._write(partition, records[at : at + count])
                at += count
            else:
                self._complete([partition])

    def _write(self, partition: PartitionCapture, records: Sequence[Message]) -> None:
        """Write records into the partition's open file, or into a new one."""
        if partition.file is None:
            self._open(partition, records[0])
        assert partition.file is not None
        partition.file.write(records)
        partition.records += len(records)
        partition.next_offset = offset_of(records[-1]) + 1
        if partition.file.size_bytes >= self.limits.size_bytes_max:
            self._complete([partition])

    def _open(self, partition: PartitionCapture, record: Message) -> None:
        offset, hour = offset_of(record), places.hour_of(record.timestamp()[1])
        folder = self.directory / places.folder_of(self.reader.topic, partition.number, hour)
        partition.window = Window(offset, self.clock_ms(), hour)
        partition.file = CaptureFile(folder, offset, self.suffix)
        partition.records = 0

    def _end_windows(self) -> None:
        now_ms = self.clock_ms()
        over = [
            partition
            for partition in self._partitions.values()
            if partition.window is not None and partition.window.is_over(now_ms, self.limits)
        ]
        if over:
            self._complete(over)
        if self.writes_empty:
            self._write_empty(now_ms)

    def _complete(self, partitions: list[PartitionCapture]) -> None:
        """Complete the open files of partitions, then commit."""
        self._name_files(partitions)
        self._commit(is_last=False)

    def _name_files(self, partitions: list[PartitionCapture]) -> None:
        for partition in partitions:
            if partition.file is None:
                continue
            assert partition.window is not None
            assert partition.next_offset is not None
            name = places.complete_name(
                partition.window.first_offset, partition.next_offset - 1, self.suffix
            )
            path = partition.file.complete(name)
            partition.file = partition.window = None
            partition.silent_since_ms = self.clock_ms()
            self._uncommitted[partition.number] = partition.next_offset
            self.files_completed += 1
            self.done(Captured(path, partition.number, partition.records, partition.next_offset))

    def _commit(self, *, is_last: bool = True) -> None:
        """Commit the offsets of complete files; a failure is retried later."""
        if not self._uncommitted:
            return
        try:
            self.reader.commit_offsets(self._uncommitted)
        except HeadraceError as error:
            if is_last:
                raise
            self.report(f"files are complete, but group {self.reader.group} is behind: {error}")
            return
        self._uncommitted.clear()

    def _write_empty(self, now_ms: int) -> None:
        """Write a file without records for each window without records."""
        for partition in self._partitions.values():
            silent_ms = now_ms - partition.silent_since_ms
            if partition.file is not None or 0 <= silent_ms < self.limits.window_ms:
                continue
            opened_ms, partition.silent_since_ms = partition.silent_since_ms, now_ms
            hour = places.hour_of(opened_ms)
            folder = self.directory / places.folder_of(self.reader.topic, partition.number, hour)
            offset = partition.next_offset or 0
            file = CaptureFile(folder, offset, self.suffix)
            path = file.complete(places.empty_name(offset, opened_ms, self.suffix))
            self.files_completed += 1
            self.done(Captured(path, partition.number, 0, offset))

    def _begin_new_partitions(self) -> None:
        """Start reading new partitions after their files or the group's offset."""
        new = [number for number in self.reader.partitions() if number not in self._partitions]
        self._check_topic()
        if not new:
            return
        committed = self.reader.committed(new)
        by_files = {number: self._captured(number) for number in new}
        starts = {number: resume_at(by_files[number], committed.get(number)) for number in new}
        for number, start in starts.items():
            self._check_end(number, start)
            self._partitions[number] = PartitionCapture(number, start, self.clock_ms())
        self._report_skipped(n for n in new if committed.get(n, 0) > (by_files[n] or 0))
        self.reader.begin(starts)

    def _report_skipped(self, partitions: Iterable[int]) -> None:
        """Report partitions whose group is ahead of the files, which may be a second copy."""
        numbers = ", ".join(map(str, sorted(partitions)))
        if numbers:
            self.report(
                f"group {self.reader.group} is ahead of the files below {self.directory} (partition"
                f" {numbers}): its records are skipped, as if their files were moved away; for a"
                " second copy of the topic choose another --group"
            )

    def _captured(self, partition: int) -> int | None:
        folder = self.directory / self.reader.topic / str(partition)
        return places.next_offset(path.name for path in folder.glob("*/*/*"))

    def _check_topic(self) -> None:
        """Reject a recreated topic; very old brokers have no topic ids to compare."""
        folder = self.directory / self.reader.topic
        now = self.reader.topic_id()
        if now == ZERO:
            return
        try:
            known = (folder / places.TOPIC_FILE).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            replace_file(str(folder / places.TOPIC_FILE), to_text(now).encode())
            return
        if known != to_text(now):
            raise TopicRecreated(self.reader.topic, str(folder))

    def _check_gap(self, partition: PartitionCapture, offset: int) -> None:
        """Detect truncation, and report records deleted before capture; other gaps are usual."""
        expected = partition.next_offset
        if expected is None or offset == expected:
            return
        if offset < expected:
            self._check_topic()
            raise self._truncated(partition.number, expected, offset)
        first = self.reader.first_offset(partition.number)
        if first > expected:
            self.report(
                f"{self.reader.topic}-{partition.number}: offsets {expected} to {first - 1} were "
                "deleted by retention before their capture"
            )

    def _check_end(self, partition: int, start: int | None) -> None:
        """Reject a log that ends before the captured offset.

        The last stable offset may be lower for a while after a capture of all records.
        """
        if start is None or self.reader.bounds(partition)[1] >= start:
            return
        if (end := self.reader.high_watermark(partition)) < start:
            raise self._truncated(partition, start, end)

    def _truncated(self, partition: int, captured: int, end: int) -> LogTruncated:
        folder = self.directory / self.reader.topic
        return LogTruncated(self.reader.topic, partition, captured, end, str(folder))

    def _report_outage(self) -> None:
        """Report the start and the end of an outage."""
        if (self.reader.outage is not None) != self._is_cut_off:
            self._is_cut_off = self.reader.outage is not None
            self.report(
                f"no broker answers ({self.reader.outage}); waiting for one"
                if self._is_cut_off
                else "a broker answers again"
            )

    def _locked(self) -> OpenFile:
        folder = self.directory / self.reader.topic
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return lock(str(folder / ".lock"))
        except DirectoryInUse as error:
            raise CaptureError(
                f"another capture writes to {folder}; stop it, or choose another directory"
            ) from error
        except OSError as error:
            raise CaptureError(f"cannot write to {folder}: {error.strerror}") from error

    def _remove_torn(self) -> None:
        """Remove incomplete files of a killed capture; their records are read again."""
        for path in (self.directory / self.reader.topic).glob(f"*/*/*/.*{places.TEMPORARY_SUFFIX}"):
            path.unlink(missing_ok=True)

    def _abort(self) -> None:
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abort()
                partition.file = partition.window = None
        self._lock = None


def by_partition(records: Sequence[Message]) -> Iterator[tuple[int, list[Message]]]:
    """Group consecutive records by partition.

    A group also ends where offsets go back, which means that the log was truncated.
    """
    for partition, run in groupby(records, key=lambda record: record.partition() or 0):
        rising = list(run)
        offsets = [offset_of(record) for record in rising]
        falls = [at for at in range(1, len(offsets)) if offsets[at] <= offsets[at - 1]]
        for begin, end in pairwise([0, *falls, len(rising)]):
            yield partition, rising[begin:end]


def offset_of(record: Message) -> int:
    offset = record.offset()
    assert offset is not None
    return offset
