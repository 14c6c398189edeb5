"""Samples the records of a topic for a profile, without any commit."""

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Message

from headrace.client.admin import Admin
from headrace.client.profiles import Profile, Sampled, profile_of
from headrace.client.reader import RecordReader
from headrace.errors import HeadraceError, OffsetOutOfRange
from headrace.protocol.batches import read_header
from headrace.protocol.compression import Codec

IDLE_S_MAX = 10.0
"""Longest wait for further records of a partition."""
SECONDS_MAX = 60.0
RECORDS_MAX = 1_000_000
FURTHER_BACK = 8
"""Growth of the range of offsets if too few of them have a record."""
BATCHES_LOOKED_AT = 8
COMPRESSED_BYTES_MAX = 1 << 20


class NothingToMeasure(HeadraceError):
    """The topic has no records to sample."""


class ReadRecords(NamedTuple):
    """Records of some partitions."""

    messages: list[Message]
    is_whole: bool
    """Whether the ends were reached; if not, the last records are missing."""


def profile_topic(
    bootstrap: str,
    topic: str,
    properties: Mapping[str, str],
    *,
    records: int,
    seconds: float | None = None,
    now_ms: int | None = None,
) -> Profile:
    """Compute the profile of the last records of a topic, or of the last seconds."""
    reader = RecordReader(bootstrap, topic, {"isolation.level": "read_committed", **properties})
    try:
        bounds = {partition: reader.bounds(partition) for partition in reader.partitions()}
        ends = {partition: end for partition, (_, end) in bounds.items()}
        begins = {partition: first for partition, (first, _) in bounds.items()}
        if seconds is not None:
            now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
            begins = begins_at(reader, ends, max(now_ms - int(seconds * 1000), 0))
        wanted = records if seconds is None else RECORDS_MAX
        messages = last_records(reader, begins, ends, wanted)
    finally:
        reader.close()
    if not messages:
        when = "" if seconds is None else f" of the last {seconds:g} s"
        raise NothingToMeasure(f"topic {topic} has no records{when} to measure")
    return profile_of(
        topic,
        [sampled(message) for message in messages],
        {partition: end - first for partition, (first, end) in bounds.items()},
        codecs_of(bootstrap, topic, properties, messages),
        zstd_ratio([message.value() or b"" for message in messages]),
    )


def last_records(
    reader: RecordReader, begins: Mapping[int, int], ends: Mapping[int, int], records: int
) -> list[Message]:
    """Read the last records, from further back if only few offsets have one.

    Offsets without a record belong to aborted records, transaction markers or compacted records. A
    read from further back that misses the end has older records than requested, so the previous
    read is then the better sample.
    """
    held = {partition: end - begins[partition] for partition, end in ends.items()}
    ends_at = time.monotonic() + SECONDS_MAX
    offsets = records
    messages: list[Message] = []
    while True:
        taken = sample_sizes(held, offsets)
        begins_now = {partition: ends[partition] - count for partition, count in taken.items()}
        found = read_to_end(reader, begins_now, ends)
        if found.is_whole or not messages:
            messages = found.messages
        is_all = sum(taken.values()) == sum(held.values())
        is_enough = is_all or 2 * len(messages) >= records
        if is_enough or not found.is_whole or time.monotonic() > ends_at:
            places = kept([message.partition() or 0 for message in messages], records)
            return [messages[place] for place in places]
        offsets *= FURTHER_BACK


def kept(partitions: Sequence[int], records: int) -> list[int]:
    """Return the indexes of the last records of each partition, as many as its share."""
    found = Counter(partitions)
    left_out = found - Counter(sample_sizes(found, records))
    places = []
    for place, partition in enumerate(partitions):
        if left_out[partition]:
            left_out[partition] -= 1
        else:
            places.append(place)
    return places


def sample_sizes(held: Mapping[int, int], records: int) -> dict[int, int]:
    """Distribute the sample over the partitions in proportion to their records.

    Equal numbers would overstate the keys of a nearly empty partition. Rounding favours the largest
    remainders, so the sum never exceeds `records`.
    """
    total = sum(held.values())
    wanted = min(records, total)
    sizes = {partition: count * wanted // total for partition, count in held.items() if count > 0}
    lost = sorted(sizes, key=lambda partition: -(held[partition] * wanted % total))
    for partition in lost[: wanted - sum(sizes.values())]:
        sizes[partition] += 1
    return {partition: size for partition, size in sizes.items() if size}


def begins_at(reader: RecordReader, ends: Mapping[int, int], timestamp_ms: int) -> dict[int, int]:
    """Return the first offset of each partition since a time, or its end."""
    found = {partition: reader.offset_at(partition, timestamp_ms) for partition in ends}
    return {
        partition: end if (begin := found[partition]) is None else min(begin, end)
        for partition, end in ends.items()
    }


def read_to_end(
    reader: RecordReader, begins: Mapping[int, int], ends: Mapping[int, int]
) -> ReadRecords:
    """Read up to the given ends, so that a growing topic does not prolong the read.

    Keep the last records of each partition, as many as its share of the offsets.
    """
    reader.assign_at(begins)
    counts = {partition: ends[partition] - begin for partition, begin in begins.items()}
    shares = sample_sizes(counts, RECORDS_MAX)
    found = {partition: deque[Message](maxlen=shares.get(partition, 0)) for partition in begins}
    unfinished = set(begins)
    began = silent_since = time.monotonic()
    while unfinished and not reader.is_at_end:
        for message in reader.read():
            partition, offset = message.partition() or 0, message.offset() or 0
            silent_since = time.monotonic()
            if offset < ends[partition]:
                found[partition].append(message)
            if offset + 1 >= ends[partition]:
                unfinished.discard(partition)
        now = time.monotonic()
        if now - silent_since > IDLE_S_MAX or now - began > SECONDS_MAX:
            break
    messages = [message for records in found.values() for message in records]
    return ReadRecords(messages, is_whole=not unfinished or reader.is_at_end)


def sampled(message: Message) -> Sampled:
    headers: Any = message.headers() or ()
    return Sampled(
        message.partition() or 0,
        max(message.timestamp()[1], 0),
        message.key(),
        message.value(),
        sum(len(name) + len(value or b"") for name, value in headers),
    )


def codecs_of(
    bootstrap: str, topic: str, properties: Mapping[str, str], messages: Sequence[Message]
) -> list[str]:
    """Return the compression of some batches, as the broker stores them."""
    step = max(1, len(messages) // BATCHES_LOOKED_AT)
    found = []
    with Admin(bootstrap, dict(properties)) as admin:
        for message in messages[::step][:BATCHES_LOOKED_AT]:
            try:
                batch = admin.partitions.batch_at(
                    topic, message.partition() or 0, message.offset() or 0
                )
            except OffsetOutOfRange:
                continue  # Deleted by retention in the meantime.
            codec = read_header(batch).codec
            found.append(Codec(codec).name.lower() if codec <= Codec.ZSTD else "unknown")
    return found


def zstd_ratio(values: Sequence[bytes]) -> float | None:
    """Return the compression ratio of values from the whole sample, compressed together."""
    import cramjam

    step = -(-sum(map(len, values)) // COMPRESSED_BYTES_MAX)
    if not step:
        return None
    sample = b"".join(values[::step])[:COMPRESSED_BYTES_MAX]
    return len(sample) / len(bytes(cramjam.zstd.compress(sample, 3)))
