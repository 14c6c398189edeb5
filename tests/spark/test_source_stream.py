"""Streams by `format("headrace")`: everything once, in batches as large as the options say."""

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client.admin import Admin
from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.offsets import Positions
from headrace.spark.source.options import parse
from headrace.spark.source.progress import GroupProgress, commit_progress
from headrace.spark.source.stream_plan import StreamPlan
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.source_topics import Batches, eventually, numbered, planning, produce, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int]:
    with Admin(bootstrap) as admin:
        found = admin.groups.committed(group)
    return {partition: at[0] for (name, partition), at in found.items() if name == topic}


def test_a_limited_stream_reads_everything_once_over_a_restart(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """ARC-3: batch windows over the same topics, by AvailableNow."""
    topic = make_topic(partitions=3)
    produce(broker.bootstrap_servers, topic, numbered(1_000, 3))
    frame = stream(spark, broker.bootstrap_servers, topic, maxOffsetsPerTrigger="300")
    batches = Batches(tmp_path / "checkpoint")
    batches.run(frame)
    assert [len(values) for values in batches.values] == [300, 300, 300, 100]
    produce(broker.bootstrap_servers, topic, numbered(50, 3, first=1_000))
    batches.run(frame)
    assert batches.all == list(range(1_050))


def test_bytes_bound_a_batch_as_well_as_rows(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    records = [{"value": b"%01000d" % number} for number in range(200)]
    produce(broker.bootstrap_servers, topic, records, batch_num_messages=10, linger_ms=20)
    limits = {"maxBytesPerTrigger": "50000", "maxOffsetsPerTrigger": "180"}
    batches = Batches(tmp_path / "checkpoint")
    batches.run(stream(spark, broker.bootstrap_servers, topic, **limits))
    assert batches.all == list(range(200))
    assert max(len(values) for values in batches.values) <= 50


def test_partitions_that_are_added_are_read_from_their_first_record(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=1)
    produce(broker.bootstrap_servers, topic, numbered(10))
    soon = {"kafka.metadata.max.age.ms": "100"}
    batches = Batches(tmp_path / "checkpoint")
    query = batches.writer(stream(spark, broker.bootstrap_servers, topic, **soon)).start()
    try:
        eventually(lambda: batches.all == list(range(10)), "the first records did not come")
        with Admin(broker.bootstrap_servers) as admin:
            admin.topics.add_partitions(topic, 3)
        added = [{"value": b"%d" % number, "partition": 2} for number in range(10, 20)]
        produce(broker.bootstrap_servers, topic, added)
        eventually(lambda: batches.all == list(range(20)), "those of the new partition did not")
    finally:
        query.stop()


def test_progress_is_a_consumer_group_s_the_last_batch_included(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    produce(broker.bootstrap_servers, topic, numbered(100, 2))
    listener = GroupProgress(
        {"bootstrap.servers": broker.bootstrap_servers}, groups={f"query of {topic}": topic}
    )
    spark.streams.addListener(listener)
    try:
        batches = Batches(tmp_path / "checkpoint")
        frame = stream(spark, broker.bootstrap_servers, topic, maxOffsetsPerTrigger="30")
        named = batches.writer(frame).queryName(f"query of {topic}")
        assert named.trigger(availableNow=True).start().awaitTermination(60)
        everything = {0: 50, 1: 50}
        eventually(
            lambda: committed(broker.bootstrap_servers, topic, topic) == everything,
            "the group did not get to the end",
        )
    finally:
        spark.streams.removeListener(listener)
        listener.close()


def test_a_source_with_a_group_shows_each_batch_when_the_next_is_planned(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, numbered(100))
    options = {"group": topic, "maxOffsetsPerTrigger": "40"}
    Batches(tmp_path / "checkpoint").run(stream(spark, broker.bootstrap_servers, topic, **options))
    eventually(
        lambda: committed(broker.bootstrap_servers, topic, topic) == {0: 80},
        "the group does not stand before the last batch",
    )


def test_progress_can_be_committed_by_hand(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    produce(broker.bootstrap_servers, topic, numbered(10, 2))
    properties = {"bootstrap.servers": broker.bootstrap_servers}
    commit_progress(properties, f"group-{topic}", {topic: {"0": 5, "1": 3}})
    found = committed(broker.bootstrap_servers, f"group-{topic}", topic)
    assert found == {0: 5, 1: 3}


def test_a_new_topic_that_matches_a_pattern_is_read_from_its_first_record(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    first = make_topic("matching")
    produce(broker.bootstrap_servers, first, numbered(5))
    options = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.metadata.max.age.ms": "1",
        "subscribePattern": f"{first}.*",
    }
    parsed = parse(options, is_streaming=True)
    with Brokers(parsed.properties) as brokers:
        plan = StreamPlan(parsed, brokers)
        begun = plan.initial()
        second = make_topic(f"{first}-too")
        produce(broker.bootstrap_servers, second, numbered(3))
        eventually(
            lambda: TopicPartition(second, 0) in plan.next_end(begun, is_limited=True),
            "the new topic was not found",
        )
        shares = plan.shares(begun, plan.next_end(begun, is_limited=True))
    assert begun == {TopicPartition(first, 0): 5}
    assert [(one.place.topic, one.first, one.end) for share in shares for one in share] == [
        (second, 0, 3)
    ]


def test_patterns_do_not_choose_the_clusters_own_topics(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """A stream over `.*` that shows its progress would read what it has just committed."""
    topic = make_topic()
    properties = {"bootstrap.servers": broker.bootstrap_servers}
    commit_progress(properties, f"group-{topic}", {topic: {"0": 0}})
    with Brokers(properties) as brokers:
        found = {one.name for one in brokers.topics(None)}
        (named,) = brokers.topics(("__consumer_offsets",))
    assert topic in found
    assert not {"__consumer_offsets", "__transaction_state"} & found
    assert named.name == "__consumer_offsets"


def test_the_beginning_is_resolved_once_and_kept(
    broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A crash in the first batch must not make `latest` a later one."""
    topic = make_topic()

    def beginning(directory: Path) -> Positions:
        place = {"startsLocation": str(directory)}
        with planning(broker.bootstrap_servers, topic, **place) as plan:
            return plan.initial()

    produce(broker.bootstrap_servers, topic, numbered(10))
    first = beginning(tmp_path)
    produce(broker.bootstrap_servers, topic, numbered(10))
    found = (first, beginning(tmp_path), beginning(tmp_path / "other"))
    assert [positions[TopicPartition(topic, 0)] for positions in found] == [10, 10, 20]


def test_a_batch_waits_for_enough_records_up_to_a_limit(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, numbered(10))
    options = {"minOffsetsPerTrigger": "100", "startingOffsets": "earliest"}
    for delay, expected in (("1h", 0), ("0s", 10)):
        with planning(broker.bootstrap_servers, topic, maxTriggerDelay=delay, **options) as plan:
            end = plan.next_end(plan.initial(), is_limited=True)
        assert end == {TopicPartition(topic, 0): expected}
