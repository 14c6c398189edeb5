"""Batches of the sink against a broker, crash by crash; tasks and driver are called directly."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import NoSuchTopic
from headrace.client.descriptions import ConfigChange, NewTopic
from headrace.client.properties import InvalidProperty
from headrace.errors import InvalidProducerEpoch
from headrace.spark.sink.errors import Fenced, OtherTasks, SinkError, WrongOption
from headrace.spark.sink.options import Guarantee, sink_options
from headrace.spark.sink.producing import SinkProducer
from headrace.spark.sink.task_writer import Epoch, TaskWriter, TaskWritten
from headrace.spark.sink.token_log import TokenLog, token_admin
from headrace.spark.sink.tokens import partition_of, token_key, transactional_id
from headrace.spark.sink.writer import abort
from headrace.testing.process import BrokerProcess
from tests.builders.sink_queries import VALUE, Query, batches_of, options_for
from tests.spark.conftest import MakeTopic


@pytest.fixture
def query(broker: BrokerProcess, make_topic: MakeTopic) -> Query:
    topic = make_topic("out", partitions=2)
    return Query(options_for(broker.bootstrap_servers, topic), f"writer-of-{topic}")


def test_rows_are_seen_when_the_driver_commits_and_not_before(query: Query) -> None:
    written = query.run(0, ["a", "b"], ["c"])
    assert query.values() == []
    query.commit(written)
    assert query.values() == [b"a", b"b", b"c"]


def test_batches_follow_each_other_in_any_number_of_tasks(query: Query) -> None:
    query.commit(query.run(0, ["a"], ["b"]))
    query.commit(query.run(1, ["c"]))
    query.commit(query.run(2, ["d"], [], ["e"]))
    assert query.values() == [b"a", b"b", b"c", b"d", b"e"]


def test_a_batch_that_comes_again_is_not_written_twice(query: Query) -> None:
    query.commit(query.run(0, ["a"], ["b"]))
    again = query.run(0, ["a"], ["b"])
    query.commit(again)
    assert all(one.is_skipped for one in again)
    assert query.values() == [b"a", b"b"]


def test_a_batch_that_is_whole_may_come_again_in_other_tasks(query: Query) -> None:
    query.commit(query.run(0, ["a"], ["b"]))
    query.commit(query.run(0, ["a", "b"]))
    assert query.values() == [b"a", b"b"]


def test_an_older_batch_changes_nothing(query: Query) -> None:
    query.commit(query.run(7, ["a"]))
    query.commit(query.run(3, ["b"]))
    assert query.values() == [b"a"]


def test_after_a_crash_before_the_decision_the_retry_may_have_other_tasks(query: Query) -> None:
    query.run(0, ["a"], ["b"], ["c"])
    query.commit(query.run(0, ["a", "b"], ["c"]))
    query.lose(2)  # No task claims the third id again; its transaction times out.
    assert query.values() == [b"a", b"b", b"c"]


def test_a_crash_leaves_no_reader_waiting_when_the_retry_has_fewer_tasks(query: Query) -> None:
    query.commit(query.run(0, ["a"], ["b"], ["c"]))
    query.run(1, ["d"], ["e"], ["f"])
    query.commit(query.run(1, ["d", "e", "f"]))
    with Admin(query.options.properties["bootstrap.servers"]) as admin:
        unused = admin.transactions.describe(transactional_id(query.writer, 2))
    assert unused.state == "Empty"
    assert query.values() == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_after_a_crash_before_the_first_commit_the_retry_writes_all_rows_again(
    query: Query,
) -> None:
    query.decide(0, query.run(0, ["a"], ["b"]), committed=0)
    query.commit(query.run(0, ["b"], ["a"]))
    assert query.values() == [b"a", b"b"]


@pytest.mark.parametrize("committed", [1, 2])
def test_after_a_crash_behind_the_first_commit_the_retry_finishes_it(
    query: Query, committed: int
) -> None:
    query.decide(0, query.run(0, ["a"], ["b"]), committed=committed)
    again = query.run(0, ["a", "b"])
    query.commit(again)
    assert again[0].is_skipped
    assert query.values() == [b"a", b"b"]


def test_a_transaction_that_was_lost_behind_the_decision_is_written_again(query: Query) -> None:
    query.decide(0, query.run(0, ["a"], ["b"]), committed=1)
    query.lose(1)
    again = query.run(0, ["a"], ["b"])
    query.commit(again)
    assert [one.is_skipped for one in again] == [True, False]
    assert query.values() == [b"a", b"b"]


def test_a_partly_committed_batch_is_rejected_if_it_is_repeated_in_fewer_tasks(
    query: Query,
) -> None:
    query.decide(0, query.run(0, ["a"], ["b"], ["c"]), committed=1)
    query.lose(1)
    with pytest.raises(OtherTasks, match="committed in part by 3 tasks, and its retry has 2"):
        query.commit(query.run(0, ["a", "b"], ["c"]))
    assert query.values() == [b"a", b"c"]


def test_a_partly_committed_batch_is_rejected_if_it_is_repeated_in_more_tasks(query: Query) -> None:
    query.decide(0, query.run(0, ["a"], ["b"]), committed=1)
    query.lose(1)
    with pytest.raises(OtherTasks, match="at least 3"):
        query.run(0, ["a"], ["b1"], ["b2"])
    assert query.values() == [b"a"]


def test_the_batch_after_a_completed_one_is_written(query: Query) -> None:
    query.decide(0, query.run(0, ["a"], ["b"]), committed=1)
    query.lose(1)
    query.commit(query.run(0, ["a"], ["b"]))
    query.commit(query.run(1, ["c"], ["d"]))
    assert query.values() == [b"a", b"b", b"c", b"d"]


def test_a_late_driver_commits_nothing_once_a_retry_has_begun(query: Query) -> None:
    late = query.run(0, ["a"], ["b"], ["c"])
    current = query.run(0, ["a", "b"], ["c"])
    with pytest.raises(Fenced):
        query.commit(late)
    query.commit(current)
    query.lose(2)
    assert query.values() == [b"a", b"b", b"c"]


def test_a_late_driver_loses_to_a_retry_whose_first_task_has_no_rows(query: Query) -> None:
    late = query.run(0, ["a"], ["b"])
    current = query.run(0, [], ["a", "b"])
    with pytest.raises(Fenced):
        query.commit(late)
    query.commit(current)
    assert query.values() == [b"a", b"b"]


def test_a_late_decision_does_not_hide_the_one_that_counts(query: Query) -> None:
    late = query.run(0, ["a"], ["b"], ["c"])
    query.commit(query.run(0, ["a", "b"], ["c"]))
    with pytest.raises(InvalidProducerEpoch):
        query.decide(0, late, committed=3)
    query.commit(query.run(0, ["a", "b"], ["c"]))
    query.lose(2)
    assert query.values() == [b"a", b"b", b"c"]


def test_a_late_driver_that_was_quicker_is_not_doubled(query: Query) -> None:
    late = query.run(0, ["a"], ["b"])
    query.commit(late)
    current = query.run(0, ["a"], ["b"])
    query.commit(current)
    assert query.values() == [b"a", b"b"]


def test_a_late_attempt_of_a_task_fails_as_another_takes_over(query: Query) -> None:
    epoch = Epoch(query.writer, 0)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from batches_of(["a"])
        overtaking.append(TaskWriter(query.options, VALUE).write(batches_of(["a", "b"]), epoch, 0))
        yield from batches_of(["b"])

    overtaking: list[TaskWritten] = []
    with pytest.raises(Fenced):
        TaskWriter(query.options, VALUE).write(overtaken(), epoch, 0)
    query.commit(overtaking)
    assert query.values() == [b"a", b"b"]


def test_aborted_rows_are_invisible_and_block_no_reader(query: Query) -> None:
    abort(query.options, [*query.run(0, ["a"], ["b"]), None], None)
    query.commit(query.run(0, ["c"]))
    assert query.values() == [b"c"]


def test_a_task_that_fails_leaves_nothing(query: Query) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches_of(["a"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        TaskWriter(query.options, VALUE).write(failing(), Epoch(query.writer, 0), 0)
    query.commit(query.run(0, ["b"]))
    assert query.values() == [b"b"]


def test_one_writer_cannot_write_one_batch_to_two_topics(
    query: Query, make_topic: MakeTopic
) -> None:
    query.commit(query.run(0, ["a"]))
    other = replace(query, options=replace(query.options, topic=make_topic("other")))
    with pytest.raises(SinkError, match=r"give each write its own token\.writer"):
        other.run(0, ["a"])


def test_a_single_transaction_needs_a_single_task(query: Query) -> None:
    single = replace(query, options=replace(query.options, is_single_transaction=True))
    with pytest.raises(WrongOption, match=r"add coalesce\(1\) before the write"):
        single.run(0, ["a"], ["b"])
    with pytest.raises(WrongOption, match="there are 2"):
        single.commit(query.run(0, ["a"], []))
    single.commit(single.run(0, ["a", "b"]))
    assert query.values() == [b"a", b"b"]


def test_a_single_transaction_creates_a_topic_only_if_permitted(broker: BrokerProcess) -> None:
    given = {"singleTransaction": "true", "kafka_allow_auto_create_topics": "true"}
    options = options_for(broker.bootstrap_servers, "made-in-one-transaction", **given)
    unlet = {k: v for k, v in options.properties.items() if k != "allow.auto.create.topics"}
    with pytest.raises(
        SinkError, match="singleTransaction=true does not create topics: create it first"
    ):
        Query(replace(options, properties=unlet), "single").run(0, ["a"])
    query = Query(options, "single")
    query.commit(query.run(0, ["a"]))
    assert query.values() == [b"a"]


@pytest.mark.parametrize("guarantee", ["idempotent", "at-least-once"])
def test_without_transactions_rows_are_there_when_their_task_is_done(
    broker: BrokerProcess, make_topic: MakeTopic, guarantee: str
) -> None:
    query = Query(
        options_for(broker.bootstrap_servers, make_topic("out"), guarantee=guarantee), "nobody"
    )
    written = query.run(0, ["a"], ["b"])
    assert query.values() == [b"a", b"b"]
    query.commit(written)
    query.commit(query.run(0, ["a"]))
    assert query.values() == [b"a", b"a", b"b"]


def test_a_broker_may_crash_between_the_tasks_and_the_driver(own_broker: BrokerProcess) -> None:
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.topics.create([NewTopic(name="out", partitions=2)])
    query = Query(options_for(own_broker.bootstrap_servers, "out"), "writer")
    written = query.run(0, ["a"], ["b"])
    own_broker.kill()
    own_broker.start()
    query.commit(written)
    own_broker.kill()
    own_broker.start()
    query.commit(query.run(0, ["a"], ["b"]))
    assert query.values() == [b"a", b"b"]


def test_a_missing_topic_is_reported_with_similar_names(own_broker: BrokerProcess) -> None:
    own_broker.restart({"auto.create.topics.enable": False})
    with Admin(own_broker.bootstrap_servers) as admin:
        admin.topics.create([NewTopic(name="orders", partitions=1)])
    with pytest.raises(NoSuchTopic, match="near it: orders"):
        Query(options_for(own_broker.bootstrap_servers, "order"), "writer").run(0, ["a"])


def test_a_record_that_is_too_large_is_reported(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic("small", max_message_bytes="1000")
    query = Query(options_for(broker.bootstrap_servers, topic), f"writer-of-{topic}")
    with pytest.raises(SinkError, match=r"raise its max\.message\.bytes"):
        query.run(0, ["x" * 2000])


def test_a_transaction_timeout_that_the_broker_rejects_is_reported(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic("out")
    options = options_for(broker.bootstrap_servers, topic, kafka_transaction_timeout_ms="900001")
    with pytest.raises(SinkError, match=r"set kafka\.transaction\.timeout\.ms"):
        Query(options, "writer").run(0, ["a"])


def test_an_invalid_value_of_a_property_is_reported(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    options = options_for(
        broker.bootstrap_servers, make_topic("out"), kafka_client_dns_lookup="soon"
    )
    with pytest.raises(InvalidProperty, match=r"client\.dns\.lookup"):
        Query(options, "writer").run(0, ["a"])


def test_the_token_topic_is_compacted_and_one_with_retention_is_rejected(query: Query) -> None:
    servers = query.options.properties["bootstrap.servers"]
    other = replace(query, options=replace(query.options, token_topic=f"tokens-{query.writer}"))
    other.commit(other.run(0, ["a"]))
    topic = other.options.token_topic
    with Admin(servers) as admin:
        entries = {entry.name: entry.value for entry in admin.configs.describe("topic", topic)}
        assert entries["cleanup.policy"] == "compact"
        change = ConfigChange(name="cleanup.policy", operation="set", value="delete")
        admin.configs.alter("topic", topic, [change])
    with pytest.raises(WrongOption, match="must have compact"):
        other.run(1, ["b"])


def test_a_token_topic_with_too_few_partitions_is_rejected(
    query: Query, make_topic: MakeTopic
) -> None:
    few = replace(query.options, token_topic=make_topic("tokens", partitions=1))
    with pytest.raises(WrongOption, match="has 1 partitions and needs 8"):
        replace(query, options=few).run(0, ["a"])


def test_a_decision_is_found_behind_the_tokens_of_many_others(query: Query) -> None:
    query.commit(query.run(0, ["a"]))
    others = sink_options({**properties_of(query), "kafka.linger.ms": "0"})
    producer = SinkProducer(replace(others, guarantee=Guarantee.AT_LEAST_ONCE))
    for number in range(1200):
        producer.send_token(
            query.options.token_topic,
            partition_of(query.writer),
            token_key("another", number),
            b"{}",
        )
    with closing(token_admin(query.options.properties, 10)) as admin:
        found = TokenLog(admin, query.options.token_topic).decision(query.writer)
    assert found is not None
    assert found.epoch == 0


def properties_of(query: Query) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in query.options.properties.items()}
