"""Opening an existing log: recovery after a crash, trust after a clean stop.

After a clean stop only names are read: the checkpoint has the end of the log, and indexes, epochs
and producers are loaded on first use. After a crash every segment beyond the recovery point is read
batch by batch, each checksum is verified, and the log ends before the first incomplete batch.
Indexes, epochs and producers are then rebuilt from the batches.

The rules for files with suffixes are Kafka's: `.deleted` files are removed; `.cleaned` files are
unfinished compactions and removed; `.swap` files are finished compactions and replace the segments
that they cover.
"""

import logging
from collections.abc import Iterator

import msgspec

from headrace.errors import CorruptMessage
from headrace.protocol.batches import BatchHeader, check_crc
from headrace.protocol.uuids import ZERO, Uuid
from headrace.runtime import files
from headrace.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    CorruptCheckpoint,
    decode_partition_metadata,
)
from headrace.storage.config import LogConfig
from headrace.storage.indexes import CorruptIndex, TransactionIndex
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.log import Log
from headrace.storage.log_files import LogFiles
from headrace.storage.producer_replay import replay_batch, replay_segments
from headrace.storage.producer_snapshots import Snapshots
from headrace.storage.producer_state import ProducerStates
from headrace.storage.resources import Resources
from headrace.storage.scanning import batches_in, headers_in
from headrace.storage.segment import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Segment,
)
from headrace.storage.segments import discard, segment_index
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_OFFSET_DIGITS = 20
_NEVER = 1 << 63
_KRAFT_SNAPSHOT = ".checkpoint"  # Belongs to the metadata log, which reads it itself.


def load_log(
    topic_partition: TopicPartition,
    directory: str,
    config: LogConfig,
    resources: Resources | None = None,
    *,
    clean: bool,
    topic_id: Uuid | None = None,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
) -> Log:
    """Open the log in a directory; `offsets` come from the checkpoints."""
    resources = resources or Resources()
    content = _settled_content(directory)
    segments = _segments(directory, content, config, resources)
    snapshots = _snapshots(directory, content, segments)
    log_files = LogFiles(directory, segments, resources, snapshots)
    if not segments:
        segments.append(log_files.create_segment(log_start_offset, config))
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    damaged_from = _damaged_from(directory, content)
    recovered = None
    if clean and damaged_from == _NEVER:
        recovered = _trust(directory, segments[-1], snapshots, recovery_point)
    if recovered is None:
        recovery_point = min(recovery_point, damaged_from)
        recovered = recover(directory, segments, snapshots, recovery_point)
    if recovered.end_offset < log_start_offset:
        _log.warning(
            "log ends before its start offset, restarting empty",
            extra={"path": directory, "log_start_offset": log_start_offset},
        )
        discard(segments, 0)
        snapshots.drop_from(0)
        segments[:] = [log_files.create_segment(log_start_offset, config)]
        recovered = Recovered(log_start_offset, log_start_offset)
    return Log(
        topic_partition,
        config,
        log_files,
        topic_id=topic_id_of(directory) if topic_id is None else topic_id,
        log_start_offset=log_start_offset,
        log_end_offset=recovered.end_offset,
        recovery_point=recovered.recovery_point,
        high_watermark=max(min(high_watermark, recovered.end_offset), log_start_offset),
        producers=recovered.producers,
    )


def topic_id_of(directory: str) -> Uuid:
    """The topic id in a partition's directory; zero if it is missing."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        return decode_partition_metadata(files.read(path))
    except FileNotFoundError:
        return ZERO
    except CorruptCheckpoint as error:
        _log.error("partition metadata not readable", extra={"path": path, "error": str(error)})
        return ZERO


class Recovered(msgspec.Struct, frozen=True):
    """The end of a recovered log, with the rebuilt state."""

    end_offset: int
    recovery_point: int
    producers: ProducerStates | None = None


def recover(
    directory: str, segments: list[Segment], snapshots: Snapshots, recovery_point: int
) -> Recovered:
    """Verify every segment beyond the recovery point and truncate at the first invalid batch.

    `segments` and `snapshots` are reduced to the remaining ones.
    """
    first = max(0, segment_index(segments, recovery_point))
    next_offset = segments[first].base_offset
    states = _producers_at(segments[:first], snapshots, next_offset)
    epochs = LeaderEpochs.load(f"{directory}/{LEADER_EPOCHS}")
    for at in range(first, len(segments)):
        segment = segments[at]
        next_offset = max(next_offset, segment.base_offset)
        if segment.base_offset > snapshots.latest:
            snapshots.take(states, segment.base_offset)
        size = segment.size
        next_offset = _recover_segment(segment, states, epochs, next_offset)
        if segment.size < size:
            _log.warning(
                "log truncated at its first invalid batch",
                extra={"path": segment.path(LOG), "size": segment.size, "size_before": size},
            )
            segment.truncate_file(segment.size)
            discard(segments[at + 1 :], 0)
            del segments[at + 1 :]
            break
        if at + 1 < len(segments):
            segment.seal()
    states.end_offset = next_offset
    return Recovered(next_offset, min(recovery_point, next_offset), states)


def _recover_segment(
    segment: Segment, states: ProducerStates, epochs: LeaderEpochs, next_offset: int
) -> int:
    """Rebuild the state of a segment's batches; truncate it after the last valid batch."""
    segment.forget_indexes()
    whole_size = 0
    for position, header in _verified_batches(segment, next_offset):
        segment.note_batch(position, header.size, header.last_offset, header.max_timestamp)
        if header.leader_epoch > epochs.latest_epoch:
            epochs.assign(header.leader_epoch, header.base_offset)
        replay_batch(states, segment, position, header)
        next_offset = header.next_offset
        whole_size = position + header.size
    segment.size = whole_size
    return next_offset


def _verified_batches(segment: Segment, next_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches of a segment up to the first that is torn, damaged or out of order."""
    try:
        for position, header, batch in batches_in(segment.open().fd, 0, segment.size):
            check_crc(batch, 0, header.size, data_position=position)
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise CorruptMessage(
                    f"the batch at position {position} has the offsets {header.base_offset} to "
                    f"{header.last_offset}, which cannot follow {next_offset - 1}"
                )
            yield position, header
            next_offset = header.next_offset
    except CorruptMessage as error:
        _log.warning(
            "segment has an invalid batch", extra={"path": segment.path(LOG), "error": str(error)}
        )


def _producers_at(segments: list[Segment], snapshots: Snapshots, offset: int) -> ProducerStates:
    """The producers as of an offset, from a snapshot before it and the segments between."""
    snapshots.drop_from(offset + 1)
    start_offset = segments[0].base_offset if segments else offset
    states = snapshots.load() or ProducerStates(start_offset)
    first = max(0, segment_index(segments, states.end_offset))
    replay_segments(states, segments[first:], offset)
    return states


# Files of the directory


def _settled_content(directory: str) -> dict[str, int]:
    """Finish interrupted changes; return the names of files with the sizes of the logs."""
    content = dict(files.sized_files(directory))
    aside = [name for name in content if name.endswith((DELETED, CLEANED, SWAP))]
    if not any(_KRAFT_SNAPSHOT not in name for name in aside):
        return content
    for name in aside:
        if name.endswith(DELETED) and _KRAFT_SNAPSHOT not in name:
            files.unlink_if_there(f"{directory}/{name}")
    _finish_compaction(directory, aside)
    return dict(files.sized_files(directory))


def _finish_compaction(directory: str, aside: list[str]) -> None:
    """Remove incomplete compacted segments, and swap complete ones in."""
    cleaned = [name for name in aside if name.endswith(CLEANED)]
    swapped = [name for name in aside if name.endswith(SWAP)]
    given_up_from = min(map(_offset_of, cleaned), default=_NEVER)
    given_up = [name for name in swapped if _offset_of(name) >= given_up_from]
    for name in (*given_up, *cleaned):
        files.unlink_if_there(f"{directory}/{name}")
    kept = [name for name in swapped if _offset_of(name) < given_up_from]
    logs = [name for name in kept if name.endswith(LOG + SWAP)]
    if logs:
        start = min(map(_offset_of, logs))
        end = max(_end_offset_of(directory, name) for name in logs)
        for name in files.names(directory):
            is_segment = name.endswith((LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX))
            if is_segment and start <= _offset_of(name) < end:
                files.unlink(f"{directory}/{name}")
    for name in kept:
        files.replace(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")


def _end_offset_of(directory: str, name: str) -> int:
    """The offset after the last record of a `.swap` log."""
    path = f"{directory}/{name}"
    file = files.open_existing(path)
    next_offset = _offset_of(name)
    for _, header in headers_in(file.fd, 0, files.file_size(path)):
        next_offset = header.next_offset
    return next_offset


def _segments(
    directory: str, content: dict[str, int], config: LogConfig, resources: Resources
) -> list[Segment]:
    """The segments in order; indexes without a log file are removed."""
    for name in content:
        stem, extension = name[:_OFFSET_DIGITS], name[_OFFSET_DIGITS:]
        if extension in (INDEX, TIME_INDEX, TRANSACTION_INDEX) and stem + LOG not in content:
            _log.warning("index without log file removed", extra={"path": f"{directory}/{name}"})
            files.unlink_if_there(f"{directory}/{name}")
    return [
        Segment(
            directory,
            offset,
            content[f"{offset:020d}{LOG}"],
            resources,
            index_interval_bytes=config.index_interval_bytes,
            index_bytes_max=config.segment_index_bytes,
        )
        for offset in sorted(_offset_of(name) for name in content if name.endswith(LOG))
    ]


def _snapshots(directory: str, content: dict[str, int], segments: list[Segment]) -> Snapshots:
    """The producer snapshots; old ones that belong to no segment are removed."""
    offsets = sorted(_offset_of(name) for name in content if name.endswith(SNAPSHOT))
    snapshots = Snapshots(directory, offsets)
    if len(offsets) > 1:
        kept = {segment.base_offset for segment in segments} | {offsets[-1]}
        for offset in offsets:
            if offset not in kept:
                files.unlink_if_there(snapshots.path(offset))
        snapshots.offsets = [offset for offset in offsets if offset in kept]
    return snapshots


def _damaged_from(directory: str, content: dict[str, int]) -> int:
    """The first segment with a damaged transaction index, which only recovery rebuilds."""
    damaged = _NEVER
    for name in content:
        if name.endswith(TRANSACTION_INDEX):
            try:
                TransactionIndex.from_bytes(files.read(f"{directory}/{name}"))
            except CorruptIndex as error:
                _log.warning(
                    "transaction index damaged",
                    extra={"path": f"{directory}/{name}", "error": str(error)},
                )
                damaged = min(damaged, _offset_of(name))
    return damaged


def _trust(
    directory: str, active: Segment, snapshots: Snapshots, recovery_point: int
) -> Recovered | None:
    """Return the state of a cleanly closed log; None if the log must be recovered."""
    try:
        end_offset = _clean_end_offset(active, recovery_point, snapshots)
    except CorruptMessage as error:
        _log.warning(
            "cleanly closed log is recovered", extra={"path": directory, "error": str(error)}
        )
        return None
    # A log closed without a snapshot had no producers.
    producers = None if snapshots.offsets else ProducerStates(end_offset)
    return Recovered(end_offset, end_offset, producers)


def _clean_end_offset(active: Segment, recovery_point: int, snapshots: Snapshots) -> int:
    """Return the end of a cleanly closed log, without reading the file if possible.

    A clean stop writes a recovery point and a producer snapshot at the end of each log. If both
    agree, they are right; otherwise the last batches are read.
    """
    if active.size == 0:
        return active.base_offset
    if snapshots.latest == recovery_point > active.base_offset:
        return recovery_point
    return active.next_offset()


def _offset_of(name: str) -> int:
    return int(name[:_OFFSET_DIGITS])
