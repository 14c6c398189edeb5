"""Names of client properties: those of the stock connector's users are known, typos are told."""

import pytest

from headrace.client.properties import names
from headrace.spark.option_names import Side, is_for_java, property_complaint
from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import sink_options

BOTH = (Side.SOURCE, Side.SINK)
CLUSTER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize(
    "name",
    [
        *("max.poll.records", "fetch.max.wait.ms", "session.timeout.ms", "client.rack"),
        *("group.instance.id", "partition.assignment.strategy", "metric.reporters"),
        *("acks", "linger.ms", "buffer.memory", "max.in.flight.requests.per.connection"),
        *("sasl.jaas.config", "ssl.truststore.location", "ssl.endpoint.identification.algorithm"),
        *("socket.timeout.ms", "statistics.interval.ms", "metadata.recovery.strategy"),
    ],
)
def test_properties_of_java_and_of_librdkafka_are_known(name: str, side: Side) -> None:
    assert property_complaint(name, side) is None


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("secuirty.protocol", "did you mean kafka.security.protocol?"),
        ("fetch.max.byte", "did you mean kafka.fetch.max.bytes?"),
        ("colour", "no client of Kafka's has such a property"),
        ("ssl.provider", "security is never left out in silence"),
        ("interceptor.classes", "nothing runs Java here"),
    ],
)
def test_others_are_told_with_what_is_meant(name: str, told: str, side: Side) -> None:
    complaint = property_complaint(name, side)
    assert complaint is not None
    assert f"kafka.{name}" in complaint
    assert told in complaint


@pytest.mark.parametrize(
    ("side", "name"),
    [
        (Side.SOURCE, "auto.offset.reset"),
        (Side.SOURCE, "enable.auto.commit"),
        (Side.SOURCE, "key.deserializer"),
        (Side.SOURCE, "value.deserializer"),
        (Side.SINK, "key.serializer"),
        (Side.SINK, "value.serializer"),
        (Side.SINK, "transactional.id"),
    ],
)
def test_what_one_side_refuses_with_the_reason_the_other_passes_over(side: Side, name: str) -> None:
    (other,) = set(BOTH) - {side}
    assert "cannot be set: " in (property_complaint(name, side) or "")
    assert property_complaint(name, other) is None


def test_what_only_java_knows_does_not_reach_librdkafka() -> None:
    options = sink_options(
        {**CLUSTER, "kafka.metric.reporters": "x", "kafka.key.deserializer": "y"}
    )
    assert options.properties == {"bootstrap.servers": "127.0.0.1:9092"}
    assert [name for name in names() if is_for_java(name)] == []


def test_a_sink_tells_a_typo_before_anything_is_written() -> None:
    with pytest.raises(WrongOption, match=r"did you mean kafka\.compression\.type"):
        sink_options({**CLUSTER, "kafka.compresion.type": "zstd"})
    with pytest.raises(WrongOption, match="did you mean guarantee"):
        sink_options({**CLUSTER, "guarante": "idempotent"})
    spark_s_own = {"checkpointLocation": "/tmp/c", "queryName": "q"}
    assert sink_options({**CLUSTER, **spark_s_own}) == sink_options(CLUSTER)
