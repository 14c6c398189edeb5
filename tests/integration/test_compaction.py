"""Compaction as a reader sees it: the last value of every key, at its own offset.

Segments roll by the timestamps of their records (`segment.ms`), so a test decides where they end:
everything of one `minute` is in one segment, and a record of a later minute closes it.
"""

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    create_topic,
    produce,
    read,
    refusal,
    set_topic_config,
    watermarks,
)
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]
Row = tuple[int, bytes | None, bytes | None]
MINUTE = 60_000
# The example that many explanations of compaction draw: offsets, keys, values.
EXAMPLE = [
    (13, "K1", "V1"),
    (17, "K5", "V2"),
    (19, "K2", "V7"),
    (20, "K2", "V1"),
    (21, "K7", "V8"),
    (22, "K1", "V9"),
    (23, "K1", "V15"),
]


def test_the_example(node: Node) -> None:
    """RET-3: offsets 13 to 23 of seven records become 17, 20, 21 and 23."""
    topic = compacted_topic(node)
    known = {offset: Sent(value.encode(), key.encode()) for offset, key, value in EXAMPLE}
    filler = Sent(b"superseded", b"K1")
    write(node, topic, [known.get(offset, filler) for offset in range(24)], minute=0)
    close_segment(node, topic)
    expected = [
        (17, b"K5", b"V2"),
        (20, b"K2", b"V1"),
        (21, b"K7", b"V8"),
        (23, b"K1", b"V15"),
    ]
    eventually(lambda: rows(node, topic)[:-1] == expected)


def test_the_last_value_of_every_key_stays(node: Node) -> None:
    """RET-4, RET-5, RET-11: a reader from the start gets the final state, in offset order."""
    topic = compacted_topic(node)
    dice = random.Random(3)
    state: dict[bytes, tuple[int, bytes]] = {}
    offset = 0
    for minute in range(6):
        keys = [b"key-%d" % dice.randrange(50) for _ in range(500)]
        records = [Sent(b"%d" % dice.getrandbits(60), key) for key in keys]
        for record in records:
            assert record.key is not None
            assert record.value is not None
            state[record.key] = (offset, record.value)
            offset += 1
        write(node, topic, records, minute=2 * minute)
    close_segment(node, topic)
    expected = sorted((offset, key, value) for key, (offset, value) in state.items())
    eventually(lambda: rows(node, topic)[:-1] == expected)
    assert watermarks(node, topic) == (0, offset + 1)


def test_a_fetch_at_a_removed_offset_continues_at_the_next(node: Node) -> None:
    """RET-5"""
    topic = compacted_topic(node)
    write(node, topic, [Sent(b"%d" % n, b"same") for n in range(100)], minute=0)
    close_segment(node, topic)
    eventually(lambda: len(rows(node, topic)) == 2)
    for offset in (0, 50, 98, 99):
        assert [message.offset() for message in read(node, topic, offset=offset)] == [99, 100]


def test_the_active_segment_is_left_alone(node: Node) -> None:
    """RET-6: the head keeps every record, the tail one per key."""
    topic = compacted_topic(node)
    write(node, topic, [Sent(b"tail %d" % n, b"a") for n in range(10)], minute=0)
    write(node, topic, [Sent(b"head %d" % n, b"b") for n in range(10)], minute=5)
    head = [(10 + n, b"b", b"head %d" % n) for n in range(10)]
    eventually(lambda: rows(node, topic) == [(9, b"a", b"tail 9"), *head])


def test_a_tombstone_deletes_its_key_and_stays_a_while(node: Node) -> None:
    """RET-7: a day by default, so that slow readers notice the deletion."""
    topic = compacted_topic(node)
    write(node, topic, [Sent(b"v", b"gone"), Sent(b"v", b"kept"), Sent(None, b"gone")], minute=0)
    close_segment(node, topic)
    expected = [(1, b"kept", b"v"), (2, b"gone", None)]
    eventually(lambda: rows(node, topic)[:-1] == expected)


def test_a_tombstone_goes_after_delete_retention(node: Node) -> None:
    """RET-7: some cleaning after its time is over."""
    topic = compacted_topic(node, delete_retention_ms=1)
    write(node, topic, [Sent(b"v", b"gone"), Sent(b"v", b"kept"), Sent(None, b"gone")], minute=0)
    minutes = itertools.count(5, 5)

    def keys_after_another_cleaning() -> list[bytes | None]:
        write(node, topic, [Sent(b"tick", b"tick")], minute=next(minutes))
        return [key for _offset, key, _value in rows(node, topic) if key != b"tick"]

    eventually(keys_after_another_cleaning, expect=lambda keys: keys == [b"kept"])


def test_fresh_records_are_protected(node: Node) -> None:
    """RET-8: min.compaction.lag.ms; a topic without it shows that the cleaner came by."""
    protected = compacted_topic(node, min_compaction_lag_ms=7 * 24 * 60 * MINUTE)
    cleaned = compacted_topic(node)
    for topic in (protected, cleaned):
        write(node, topic, [Sent(b"%d" % n, b"same") for n in range(10)], minute=0)
        close_segment(node, topic)
    eventually(lambda: len(rows(node, cleaned)) == 2)
    assert len(rows(node, protected)) == 11


def test_readers_continue_while_the_log_is_cleaned(node: Node) -> None:
    """RET-9: every read in between sees each key's last value, and never an error."""
    topic = compacted_topic(node)
    for minute in range(5):
        records = [Sent(b"%d" % minute, b"key-%d" % n) for n in range(300)]
        write(node, topic, records, minute=2 * minute)
    close_segment(node, topic)

    def state_while_cleaning() -> int:
        found = rows(node, topic)[:-1]
        assert {key: value for _offset, key, value in found} == {
            b"key-%d" % n: b"4" for n in range(300)
        }
        return len(found)

    eventually(state_while_cleaning, expect=lambda count: count == 300)


def test_a_record_without_key_is_refused(node: Node) -> None:
    """RET-10: INVALID_RECORD, and nothing is stored."""
    topic = compacted_topic(node)
    assert refusal(node, topic, Sent(b"no key")) == KafkaError.INVALID_RECORD
    assert watermarks(node, topic) == (0, 0)
    produce(node, topic, [Sent(b"v", b"k")])
    assert watermarks(node, topic) == (0, 1)


def test_compact_and_delete_together(node: Node) -> None:
    """RET-2: the old goes by time, the rest is compacted."""
    topic = compacted_topic(node, cleanup_policy="compact,delete", retention_ms=90 * MINUTE)
    day_ago = AN_HOUR_AGO - 24 * 60 * MINUTE
    produce(node, topic, [Sent(b"ancient", b"a", timestamp=day_ago)])
    write(node, topic, [Sent(b"%d" % n, b"b") for n in range(10)], minute=0)
    eventually(lambda: watermarks(node, topic) == (1, 11))
    close_segment(node, topic)
    eventually(lambda: rows(node, topic)[:-1] == [(10, b"b", b"9")])


def test_a_topic_that_becomes_compacted_is_cleaned(node: Node) -> None:
    """RET-2: the policy may change while the topic lives."""
    topic = create_topic(node, segment_ms=MINUTE, min_cleanable_dirty_ratio=0)
    write(node, topic, [Sent(b"%d" % n, b"same") for n in range(10)], minute=0)
    close_segment(node, topic)
    set_topic_config(node, topic, "cleanup.policy", "compact")
    eventually(lambda: rows(node, topic)[:-1] == [(9, b"same", b"9")])


def test_a_crash_at_any_moment_of_cleaning_loses_no_key(start_node: StartNode) -> None:
    """RET-4, RET-9, RET-11, LOG-11: kill -9 in between, several times; the state is the same."""
    node = start_node(log_cleaner_backoff_ms=15)
    topic = compacted_topic(node)
    state: dict[bytes | None, bytes | None] = {}
    for round_number, minute in zip(range(4), itertools.count(0, 2), strict=False):
        for record in updates(round_number):
            state[record.key] = record.value
        write(node, topic, updates(round_number), minute=minute)
        node.kill()
        node.start()
        assert {key: value for _offset, key, value in rows(node, topic)} == state
    close_segment(node, topic)
    eventually(lambda: len(rows(node, topic)) == len(state) + 1)
    assert {key: value for _offset, key, value in rows(node, topic)[:-1]} == state


def compacted_topic(node: Node, **configs: Any) -> str:
    """A topic that is cleaned as soon as there is anything to clean."""
    configs.setdefault("cleanup_policy", "compact")
    configs.setdefault("min_cleanable_dirty_ratio", 0)
    return create_topic(node, segment_ms=MINUTE, **configs)


def updates(round_number: int) -> list[Sent]:
    return [Sent(b"round %d" % round_number, b"key-%d" % n) for n in range(round_number, 2_000)]


def write(node: Node, topic: str, records: Iterable[Sent], *, minute: int) -> None:
    timestamp = AN_HOUR_AGO + minute * MINUTE
    produce(node, topic, [record._replace(timestamp=timestamp) for record in records])


def close_segment(node: Node, topic: str) -> None:
    """A record of a much later minute: it is alone in the active segment."""
    write(node, topic, [Sent(b"later", b"closes the segment before")], minute=40)


def rows(node: Node, topic: str) -> list[Row]:
    return [(int(m.offset() or 0), m.key(), m.value()) for m in read(node, topic)]
