"""Pushed metrics of clients as lines of the metrics page."""

from headrace.broker.metrics.client_metrics import telemetry_families
from headrace.broker.metrics.telemetry import PushedMetrics, Telemetry, attributes_of
from headrace.protocol.otlp import Series, SeriesKind
from headrace.protocol.uuids import random_uuid
from headrace.runtime.exposition import render

NOW = 1_700_000_000_000
GAUGE, COUNTER = SeriesKind.GAUGE, SeriesKind.COUNTER


def page(*pushes: tuple[str, list[Series]]) -> list[str]:
    telemetry = Telemetry(1 << 20)
    for client_id, series in pushes:
        instance_id = random_uuid()
        client = attributes_of(instance_id, client_id, ("librdkafka", "2.1"), "10.0.0.7", 4000)
        telemetry.store(instance_id, PushedMetrics(client, NOW, series))
    text = "".join(render(telemetry_families(telemetry, NOW)))
    return [
        line for line in text.splitlines() if line.startswith(("kafka_client", "# TYPE kafka_c"))
    ]


def test_clients_share_a_family_and_differ_by_labels() -> None:
    series = [Series("org.apache.kafka.producer.record.queue.time.avg", GAUGE, (), 2.5)]
    kind, first, second = page(("a", series), ("b", series))
    name = "kafka_client_producer_record_queue_time_avg"
    assert kind == f"# TYPE {name} gauge"
    assert first.startswith(f'{name}{{client_id="a",client_instance_id="')
    assert second.startswith(f'{name}{{client_id="b",client_instance_id="')
    assert second.endswith(" 2.5")


def test_a_counter_is_called_a_total() -> None:
    found = page(("a", [Series("my.requests", COUNTER, (), 1.0)]))
    assert found[0] == "# TYPE kafka_client_my_requests_total counter"
    found = page(("a", [Series("connection.creation.total", COUNTER, (), 1.0)]))
    assert found[0] == "# TYPE kafka_client_connection_creation_total counter"


def test_invalid_names_and_labels_are_converted() -> None:
    attributes = (("node.id", '1"\n'), ("1st", "x"), ("client_id", "somebody else"))
    _, line = page(("a", [Series("a-b c", GAUGE, attributes, 1.0)]))
    assert line.startswith('kafka_client_a_b_c{node_id="1\\"\\n",_1st="x",client_id="a",')


def test_a_name_that_two_series_share_is_shown_once() -> None:
    gauge, total = Series("x_total", GAUGE, (), 1.0), Series("x", COUNTER, (), 1.0)
    assert len(page(("a", [gauge]), ("b", [total]))) == 2
    twice = [Series("x", GAUGE, (), 1.0), Series("x", GAUGE, (), 2.0)]
    assert page(("a", twice))[1].endswith(" 2.0")
