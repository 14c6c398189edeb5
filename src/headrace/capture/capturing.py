"""A topic into files: records in, complete files out, each record in exactly one of them.

A file gets its name when it is complete and on the disk; only then is the group's offset committed.
So after any crash the names of the files tell where to go on, and what was half written is removed
and read again. Offsets mean this only within one topic, so its id is kept beside the files: one
that was deleted and made again is refused. So is a log that ends before what was captured of it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from confluent_kafka import Message

from headrace.capture import places
from headrace.capture.errors import CaptureError, LogCutBack, TopicMadeAgain
from headrace.capture.files import CaptureFile, size_of
from headrace.capture.reading import PartitionReader
from headrace.capture.windows import Limits, Window, fitting, resume_at
from headrace.errors import HeadraceError
from headrace.protocol.uuids import ZERO, to_text
from headrace.runtime.files import DirectoryInUse, OpenFile, lock, replace_file

NEW_PARTITIONS_S = 30.0
"""How often the topic is looked at for partitions that were added."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Captured:
    """A file that was completed."""

    path: Path
    partition: int
    records: int
    next_offset: int


@dataclass(slots=True)
class PartitionCapture:
    """One partition: what comes next, and the file that is open for it."""

    number: int
    next_offset: int | None
    silent_since_ms: int
    window: Window | None = None
    file: CaptureFile | None = None
    records: int = 0


@dataclass(slots=True)
class Capture:
    """Writes one topic below a directory, as the only one that does."""

    reader: PartitionReader
    directory: Path
    suffix: str
    limits: Limits
    tell: Tell
    done: Callable[[Captured], None]
    writes_empty: bool = False
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    files_completed: int = 0
    _partitions: dict[int, PartitionCapture] = field(default_factory=dict)
    _uncommitted: dict[int, int] = field(default_factory=dict)
    _lock: OpenFile | None = None
    _is_cut_off: bool = False

    def run(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        """Write what comes until told to stop, or until the end of the topic as it is found."""
        self.reader.partitions()  # Before the lock: of a topic that is not there nothing is left.
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
                f"cannot write below {self.directory}: {what}; what is complete there stays, and "
                "the next run goes on after it"
            ) from error
        finally:
            self._abort()

    def _write_whole(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        """Write, and keep what is there if that cannot go on: a deleted topic has it no more."""
        try:
            self._write_until(once=once, is_stopped=is_stopped)
        except HeadraceError:
            self._name_files(list(self._partitions.values()))
            raise

    def _write_until(self, *, once: bool, is_stopped: Callable[[], bool]) -> None:
        look_again = time.monotonic() + NEW_PARTITIONS_S
        while not is_stopped():
            for partition, records in by_partition(self.reader.read()):
                self._take(self._partitions[partition], records)
            self._end_windows()
            self._tell_outage()
            if once and self.reader.is_at_end:
                return
            if time.monotonic() >= look_again:
                self._begin_new_partitions()
                look_again = time.monotonic() + NEW_PARTITIONS_S

    def _take(self, partition: PartitionCapture, records: Sequence[Message]) -> None:
        """Write a run of a partition's records, in as many files as it takes."""
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
        """Complete the open files of these partitions, then let the group know."""
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
        """Commit what is in complete files. If it fails, it is tried later: the files tell."""
        if not self._uncommitted:
            return
        try:
            self.reader.commit_offsets(self._uncommitted)
        except HeadraceError as error:
            if is_last:
                raise
            self.tell(f"the files are complete, but group {self.reader.group} is behind: {error}")
            return
        self._uncommitted.clear()

    def _write_empty(self, now_ms: int) -> None:
        """A file without records for each window in which a partition was silent."""
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
        """Read the partitions that are not read yet from where their files, or the group, end."""
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
        self._tell_left_out(n for n in new if committed.get(n, 0) > (by_files[n] or 0))
        self.reader.begin(starts)

    def _tell_left_out(self, partitions: Iterable[int]) -> None:
        """Say where the group is ahead of the files: these may be a second copy, not moved away."""
        numbers = ", ".join(map(str, sorted(partitions)))
        if numbers:
            self.tell(
                f"group {self.reader.group} is ahead of the files below {self.directory} (partition"
                f" {numbers}): what it has is left out, as files that were moved away; for a second"
                " copy of the topic name another --group"
            )

    def _captured(self, partition: int) -> int | None:
        folder = self.directory / self.reader.topic / str(partition)
        return places.next_offset(path.name for path in folder.glob("*/*/*"))

    def _check_topic(self) -> None:
        """Refuse another topic of the same name; brokers of long ago have no ids to tell it by."""
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
            raise TopicMadeAgain(self.reader.topic, str(folder))

    def _check_gap(self, partition: PartitionCapture, offset: int) -> None:
        """Tell if the log was cut before it was read; gaps of other kinds are usual."""
        expected = partition.next_offset
        if expected is None or offset == expected:
            return
        if offset < expected:
            self._check_topic()
            raise self._cut_back(partition.number, expected, offset)
        first = self.reader.first_offset(partition.number)
        if first > expected:
            self.tell(
                f"{self.reader.topic}-{partition.number}: the offsets {expected} to {first - 1} "
                "were deleted by retention before they were captured"
            )

    def _check_end(self, partition: int, start: int | None) -> None:
        """Refuse a log that ends before what was captured of it.

        The end of what is committed may do so for a while, where a capture has taken all records.
        """
        if start is None or self.reader.bounds(partition)[1] >= start:
            return
        if (end := self.reader.high_watermark(partition)) < start:
            raise self._cut_back(partition, start, end)

    def _cut_back(self, partition: int, captured: int, end: int) -> LogCutBack:
        folder = self.directory / self.reader.topic
        return LogCutBack(self.reader.topic, partition, captured, end, str(folder))

    def _tell_outage(self) -> None:
        """Say once that no broker answers, and once that one does again."""
        if (self.reader.outage is not None) != self._is_cut_off:
            self._is_cut_off = self.reader.outage is not None
            self.tell(
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
                f"another capture writes to {folder}; end it, or choose another directory"
            ) from error
        except OSError as error:
            raise CaptureError(f"cannot write to {folder}: {error.strerror}") from error

    def _remove_torn(self) -> None:
        """Remove what a capture that was killed had not completed; it is read again."""
        for path in (self.directory / self.reader.topic).glob(f"*/*/*/.*{places.TEMPORARY_SUFFIX}"):
            path.unlink(missing_ok=True)

    def _abort(self) -> None:
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abort()
                partition.file = partition.window = None
        self._lock = None


def by_partition(records: Sequence[Message]) -> Iterator[tuple[int, list[Message]]]:
    """Records in runs of one partition, in the order in which they came.

    A run ends also where offsets go back: what comes then is of a log that was cut.
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
