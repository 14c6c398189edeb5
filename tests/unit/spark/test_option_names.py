"""Names of client properties: the stock connector's are accepted, typos are rejected."""

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
def test_properties_of_java_and_of_librdkafka_are_valid(name: str, side: Side) -> None:
    assert property_complaint(name, side) is None


@pytest.mark.parametrize("side", BOTH)
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("secuirty.protocol", "did you mean kafka.security.protocol?"),
        ("fetch.max.byte", "did you mean kafka.fetch.max.bytes?"),
        ("colour", "no Kafka client has such a property"),
        ("ssl.provider", "it configures Java's own TLS and SASL"),
        ("interceptor.classes", "the connector does not run Java"),
    ],
)
def test_other_properties_are_reported_with_the_likely_name(
    name: str, error: str, side: Side
) -> None:
    complaint = property_complaint(name, side)
    assert complaint is not None
    assert f"kafka.{name}" in complaint
    assert error in complaint


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
def test_properties_that_one_side_refuses_are_ignored_by_the_other(side: Side, name: str) -> None:
    (other,) = set(BOTH) - {side}
    assert "cannot be set: " in (property_complaint(name, side) or "")
    assert property_complaint(name, other) is None


def test_properties_of_java_do_not_reach_librdkafka() -> None:
    options = sink_options(
        {**CLUSTER, "kafka.metric.reporters": "x", "kafka.key.deserializer": "y"}
    )
    assert options.properties == {"bootstrap.servers": "127.0.0.1:9092"}
    assert [name for name in names() if is_for_java(name)] == []


def test_a_sink_reports_a_typo_before_anything_is_written() -> None:
    with pytest.raises(WrongOption, match=r"did you mean kafka\.compression\.type"):
        sink_options({**CLUSTER, "kafka.compresion.type": "zstd"})
    with pytest.raises(WrongOption, match="did you mean guarantee"):
        sink_options({**CLUSTER, "guarante": "idempotent"})
    spark_s_own = {"checkpointLocation": "/tmp/c", "queryName": "q"}
    assert sink_options({**CLUSTER, **spark_s_own}) == sink_options(CLUSTER)
