"""Old records go: by time, by size, from whole segments only."""

from collections.abc import Callable

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    create_topic,
    numbered,
    produce,
    read_values,
    values,
    watermarks,
)
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]
MINUTE = 60_000
MEGABYTE = 1_048_576


def test_records_older_than_the_topic_keeps_them_go(node: Node) -> None:
    """RET-1, RET-2: by time; the youngest segment stays with all that is in it."""
    topic = create_topic(node, retention_ms=30 * MINUTE, segment_ms=10 * MINUTE)
    produce(node, topic, [Sent(b"old", timestamp=AN_HOUR_AGO)])
    produce(node, topic, values("young"))
    eventually(lambda: watermarks(node, topic) == (1, 2))
    assert read_values(node, topic) == [b"young"]


def test_even_the_last_segment_goes_when_all_of_it_is_old(node: Node) -> None:
    """RET-1: a topic without new records becomes empty; offsets go on."""
    topic = create_topic(node, retention_ms=30 * MINUTE)
    produce(node, topic, [Sent(b"old", timestamp=AN_HOUR_AGO)] * 5)
    eventually(lambda: watermarks(node, topic) == (5, 5))
    assert produce(node, topic, values("young"))[0].offset() == 5


def test_a_topic_is_kept_within_its_size(node: Node) -> None:
    """RET-1: by size; what stays is the newest, in whole segments."""
    topic = create_topic(node, retention_bytes=2 * MEGABYTE, segment_bytes=MEGABYTE)
    produce(node, topic, numbered(6_000, size=1_000), compression_type="none", batch_size=50_000)
    low = eventually(
        lambda: watermarks(node, topic)[0],
        expect=lambda low: (6_000 - low) * 1_000 < 3 * MEGABYTE,  # It may take several rounds.
    )
    remaining = read_values(node, topic)
    assert remaining == [record.value for record in numbered(6_000, size=1_000)[low:]]
    assert len(remaining) * 1_000 + MEGABYTE >= 2 * MEGABYTE


def test_files_of_old_segments_leave_the_disk(node: Node) -> None:
    """RET-1, LOG-12: after file.delete.delay.ms."""
    topic = create_topic(node, retention_bytes=MEGABYTE, segment_bytes=MEGABYTE)
    produce(node, topic, numbered(5_000, size=1_000), compression_type="none", batch_size=50_000)
    directory = node.data / f"{topic}-0"
    first = directory / f"{0:020}.log"
    eventually(lambda: not first.exists())
    eventually(lambda: not list(directory.glob("*.deleted")))


def test_without_limits_everything_stays(node: Node) -> None:
    """RET-1: minus one is for ever; a neighbour with a limit shows that the clock ticks."""
    patient = create_topic(node, retention_ms=-1, segment_ms=10 * MINUTE)
    hasty = create_topic(node, retention_ms=30 * MINUTE, segment_ms=10 * MINUTE)
    for topic in (patient, hasty):
        produce(node, topic, [Sent(b"ancient", timestamp=1_000)])
        produce(node, topic, values("young"))
    eventually(lambda: watermarks(node, hasty) == (1, 2))
    assert read_values(node, patient) == [b"ancient", b"young"]


def test_the_brokers_setting_is_for_topics_without_their_own(start_node: StartNode) -> None:
    """RET-1: milliseconds win over hours, the topic wins over the broker."""
    node = start_node(log_retention_hours=1_000, log_retention_ms=30 * MINUTE)
    follows = create_topic(node)
    differs = create_topic(node, retention_ms=1_000 * MINUTE)
    for topic in (follows, differs):
        produce(node, topic, [Sent(b"old", timestamp=AN_HOUR_AGO)])
    eventually(lambda: watermarks(node, follows) == (1, 1))
    assert watermarks(node, differs) == (0, 1)


def test_records_removed_by_retention_stay_removed_after_a_crash(start_node: StartNode) -> None:
    """RET-1, LOG-11"""
    node = start_node()
    topic = create_topic(node, retention_ms=30 * MINUTE, segment_ms=10 * MINUTE)
    produce(node, topic, [Sent(b"old", timestamp=AN_HOUR_AGO)])
    produce(node, topic, values("young"))
    eventually(lambda: watermarks(node, topic) == (1, 2))
    node.kill()
    node.start()
    assert watermarks(node, topic) == (1, 2)
    assert read_values(node, topic) == [b"young"]
