"""Faults of a reader: restarts, retention, recreated topics, damaged bytes.

Mostly without Spark: the part that runs in tasks and the part that plans, on a real broker.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.errors import DamagedRecords, DataLost, SourceError, TopicRecreated
from headrace.spark.source.starts import load, starts_path
from headrace.spark.source.stream_plan import StreamPlan
from headrace.testing.process import BrokerProcess
from tests.spark.source_topics import Batches, numbered, planning, produce, stream, values_of, whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"

MakePlan = Callable[..., StreamPlan]


def fill(broker: BrokerProcess, count: int, first: int = 0) -> None:
    records = numbered(count, first=first)
    small = {"batch_num_messages": 10, "linger_ms": 20}
    produce(broker.bootstrap_servers, TOPIC, records, **small)


def create(broker: BrokerProcess) -> bytes:
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.create([NewTopic(name=TOPIC, partitions=1)])
        return admin.cluster.topic(TOPIC).topic_id


def make_again(broker: BrokerProcess) -> bytes:
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.delete([TOPIC])
    return create(broker)


@pytest.fixture
def plan_of(own_broker: BrokerProcess) -> Iterator[MakePlan]:
    """Plan a stream of the topic from its beginning, and notice at once what changes."""
    soon = {"kafka_metadata_max_age_ms": "1", "startingOffsets": "earliest"}
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(
            planning(own_broker.bootstrap_servers, TOPIC, **soon, **options)
        )


def expected(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def test_a_broker_that_is_killed_while_it_is_read_costs_no_record(
    own_broker: BrokerProcess,
) -> None:
    create(own_broker)
    fill(own_broker, 500)

    def crash() -> None:
        own_broker.kill()
        own_broker.start()

    found = values_of(own_broker.bootstrap_servers, [whole(TOPIC, 500)], between=crash)
    assert found == expected(*range(500))


def test_a_broker_that_does_not_return_is_an_error_after_a_timeout(
    own_broker: BrokerProcess,
) -> None:
    create(own_broker)
    fill(own_broker, 500)
    patience = {"default.api.timeout.ms": "500"}
    with pytest.raises(SourceError, match=f"{TOPIC}-0 cannot be read for 0.5 s"):
        values_of(
            own_broker.bootstrap_servers,
            [whole(TOPIC, 500)],
            between=own_broker.kill,
            properties=patience,
        )


def test_an_address_without_a_broker_is_reported_soon() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with (
        Brokers(nowhere, patience_s=0.2) as brokers,
        pytest.raises(BrokerUnreachable, match=r"cannot reach 127\.0\.0\.1:1"),
    ):
        brokers.topics((TOPIC,))


def test_records_removed_by_retention_are_an_error_that_names_them(
    own_broker: BrokerProcess,
) -> None:
    create(own_broker)
    fill(own_broker, 100)
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(TOPIC, {0: 40})
    with pytest.raises(DataLost, match=r"offsets 0 to 39 of orders-0 are gone.*failOnDataLoss"):
        values_of(own_broker.bootstrap_servers, [whole(TOPIC, 100)])


def test_a_reader_that_accepts_lost_records_is_warned(
    own_broker: BrokerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    create(own_broker)
    fill(own_broker, 100)
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(TOPIC, {0: 40})
    with caplog.at_level(logging.WARNING):
        found = values_of(
            own_broker.bootstrap_servers, [whole(TOPIC, 100)], fails_on_data_loss=False
        )
    assert found == expected(*range(40, 100))
    (lost,) = [one for one in caplog.records if one.message.startswith("records lost")]
    assert vars(lost).items() >= {"topic": TOPIC, "first_offset": 0, "last_offset": 39}.items()


def test_retention_that_overtakes_a_stream_stops_it_with_the_reason(
    spark: "SparkSession", own_broker: BrokerProcess, tmp_path: Path
) -> None:
    create(own_broker)
    fill(own_broker, 10)
    frame = stream(spark, own_broker.bootstrap_servers, TOPIC)
    batches = Batches(tmp_path / "checkpoint")
    batches.run(frame)
    fill(own_broker, 20, first=10)
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(TOPIC, {0: 15})
    with pytest.raises(Exception, match="offsets 10 to 14 of orders-0 are gone"):
        batches.run(frame)
    batches.run(stream(spark, own_broker.bootstrap_servers, TOPIC, failOnDataLoss="false"))
    assert batches.all == [*range(10), *range(15, 30)]


def test_a_task_does_not_take_records_of_another_topic_of_the_same_name(
    own_broker: BrokerProcess,
) -> None:
    old = create(own_broker)
    fill(own_broker, 10)
    make_again(own_broker)
    fill(own_broker, 10, first=100)
    with pytest.raises(TopicRecreated, match="deleted and recreated"):
        values_of(own_broker.bootstrap_servers, [whole(TOPIC, 10, topic_id=old)])


def test_a_recreated_topic_is_noticed_independent_of_its_offsets(
    own_broker: BrokerProcess, plan_of: MakePlan
) -> None:
    create(own_broker)
    fill(own_broker, 10)
    plan = plan_of()
    end = plan.next_end(plan.initial(), is_limited=False)
    make_again(own_broker)
    fill(own_broker, 30)
    with pytest.raises(TopicRecreated, match="new checkpoint"):
        plan.next_end(end, is_limited=False)


def test_a_recreated_topic_is_noticed_after_a_restart_with_stored_starts(
    own_broker: BrokerProcess, plan_of: MakePlan, tmp_path: Path
) -> None:
    create(own_broker)
    fill(own_broker, 10)
    plan = plan_of(startsLocation=str(tmp_path))
    end = plan.next_end(plan.initial(), is_limited=False)
    make_again(own_broker)
    fill(own_broker, 30)
    with pytest.raises(TopicRecreated):
        plan_of(startsLocation=str(tmp_path)).next_end(end, is_limited=False)


def test_a_stream_that_may_lose_data_reads_the_new_topic_whole(
    own_broker: BrokerProcess, plan_of: MakePlan, tmp_path: Path
) -> None:
    create(own_broker)
    fill(own_broker, 10)
    plan = plan_of(failOnDataLoss="false", startsLocation=str(tmp_path))
    end = plan.next_end(plan.initial(), is_limited=False)
    make_again(own_broker)
    fill(own_broker, 3)
    again = plan.next_end(end, is_limited=False)
    assert plan.shares(end, again) == []
    later = plan.next_end(again, is_limited=False)
    (share,) = plan.shares(again, later)
    assert [(one.first, one.end) for one in share] == [(0, 3)]
    fill(own_broker, 2)
    (share,) = plan.shares(later, plan.next_end(later, is_limited=False))
    assert [(one.first, one.end) for one in share] == [(3, 5)]
    kept = load(starts_path(str(tmp_path)))
    assert kept is not None
    assert kept.remade == {TOPIC}


def test_a_topic_that_is_deleted_stops_the_stream_with_the_reason(
    own_broker: BrokerProcess, plan_of: MakePlan
) -> None:
    create(own_broker)
    fill(own_broker, 10)
    strict, lenient = plan_of(), plan_of(failOnDataLoss="false")
    end = strict.next_end(strict.initial(), is_limited=False)
    lenient.initial()
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.topics.delete([TOPIC])
    with pytest.raises(DataLost, match="deleted"):
        strict.next_end(end, is_limited=False)
    assert lenient.next_end(end, is_limited=False) == {}


def test_damaged_bytes_in_a_segment_are_an_error_that_names_the_offset(
    own_broker: BrokerProcess,
) -> None:
    create(own_broker)
    fill(own_broker, 1)
    own_broker.stop()
    (segment,) = own_broker.data_dir.rglob(f"{TOPIC}-0/*.log")
    content = bytearray(segment.read_bytes())
    content[-2] ^= 0x10  # In the value: the broker's recovery looks at headers only.
    segment.write_bytes(content)
    own_broker.start()
    with pytest.raises(DamagedRecords, match="orders-0: the batch at offset 0 is damaged"):
        values_of(own_broker.bootstrap_servers, [whole(TOPIC, 1)])
    unchecked = {"check.crcs": "false"}
    found = values_of(own_broker.bootstrap_servers, [whole(TOPIC, 1)], properties=unchecked)
    assert found == [b" "]
