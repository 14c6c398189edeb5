"""The sink's transactions against Apache Kafka: ended by another process than began them."""

from collections.abc import Iterator

import pytest

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.spark.sink.errors import Fenced
from tests.builders.sink_queries import Query, options_for
from tests.processes.kafka import KafkaMissing, find_kafka
from tests.processes.nodes import Kafka, Node, eventually


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    try:
        find_kafka()
    except KafkaMissing as missing:
        pytest.skip(str(missing))
    node = Node(Kafka(), tmp_path_factory.mktemp("kafka"), {})
    node.start()
    yield node
    node.kill()


@pytest.fixture
def query(kafka: Node, request: pytest.FixtureRequest) -> Query:
    topic = f"out-{abs(hash(request.node.name))}"
    with Admin(kafka.address) as admin:
        admin.topics.create([NewTopic(name=topic, partitions=2)])
        eventually(lambda: topic in admin.cluster.topic_names())
    return Query(options_for(kafka.address, topic), f"writer-of-{topic}")


def test_batches_are_committed_by_the_driver_and_once(query: Query) -> None:
    written = query.run(0, ["a"], ["b"])
    assert query.values() == []
    query.commit(written)
    query.commit(query.run(0, ["a"], ["b"]))
    query.commit(query.run(1, ["c"]))
    assert query.values() == [b"a", b"b", b"c"]


def test_a_batch_is_completed_after_a_crash_behind_the_first_commit(query: Query) -> None:
    query.decide(0, query.run(0, ["a"], ["b"], ["c"]), committed=1)
    query.lose(2)
    query.commit(query.run(0, ["a"], ["b"], ["c"]))
    assert query.values() == [b"a", b"b", b"c"]


def test_a_late_driver_commits_nothing(query: Query) -> None:
    late = query.run(0, ["a"], ["b"])
    current = query.run(0, ["a", "b"], [])
    with pytest.raises(Fenced):
        query.commit(late)
    query.commit(current)
    query.lose(1)
    assert query.values() == [b"a", b"b"]
