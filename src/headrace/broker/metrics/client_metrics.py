"""The metrics that clients push, as families of the metrics page.

A client's metric `org.apache.kafka.producer.request.latency.avg` is the family
`kafka_client_producer_request_latency_avg`, with the client and its attributes as labels. Names and
labels come from clients, so invalid characters are replaced and long ones are dropped.
"""

import re
from collections.abc import Iterable, Iterator

from headrace.broker.metrics.telemetry import ClientAttributes, PushedMetrics, Telemetry
from headrace.protocol.otlp import Series, SeriesKind
from headrace.runtime.exposition import Family, Sample, counter, gauge, labels

_PREFIX = "kafka_client_"
_KAFKAS = "org.apache.kafka."
_TEXT_MAX = 200
_UNFIT = re.compile(r"[^a-zA-Z0-9_]")
_HELP = "Pushed by clients (KIP-714)."


def telemetry_families(telemetry: Telemetry, now_ms: int) -> Iterator[Family]:
    """The newest metrics of every client that pushes, and counters of the pushes."""
    pushed = telemetry.pushed(now_ms)
    own = "kafka_server_clientmetrics"
    yield gauge(f"{own}_instance_count", "Clients that push metrics.", len(pushed))
    yield counter(f"{own}_push_total", "Pushes of clients.", telemetry.pushes)
    yield counter(
        f"{own}_dropped_total",
        "Pushes dropped to make room for others.",
        telemetry.pushes_dropped,
    )
    for (name, kind), samples in _by_name(pushed).items():
        yield Family(name, kind.value, _HELP, samples.values())


def _by_name(
    pushed: Iterable[PushedMetrics],
) -> dict[tuple[str, SeriesKind], dict[str, Sample]]:
    """Group the samples by name, as the format requires, with each set of labels once."""
    families: dict[tuple[str, SeriesKind], dict[str, Sample]] = {}
    kinds: dict[str, SeriesKind] = {}
    for one in pushed:
        for series in one.series:
            name = _family_name(series)
            if len(name) > _TEXT_MAX or kinds.setdefault(name, series.kind) is not series.kind:
                continue  # Clients use one name for different kinds: the first one is shown.
            text = _labels(one.client, series)
            families.setdefault((name, series.kind), {})[text] = Sample(series.value, text)
    return families


def _family_name(series: Series) -> str:
    plain = _UNFIT.sub("_", series.name.removeprefix(_KAFKAS))
    is_total = series.kind is SeriesKind.COUNTER and not plain.endswith(
        ("_total", "_count", "_sum")
    )
    return f"{_PREFIX}{plain}_total" if is_total else f"{_PREFIX}{plain}"


def _labels(client: ClientAttributes, series: Series) -> str:
    """The labels of a series; its own attributes cannot replace the client's labels."""
    pairs = {
        f"_{fit}" if fit[:1].isdigit() else fit: value[:_TEXT_MAX]
        for key, value in series.attributes
        if len(fit := _UNFIT.sub("_", key)) <= _TEXT_MAX and not fit.startswith("__")
    }
    pairs["client_id"] = client.client_id[:_TEXT_MAX]
    pairs["client_instance_id"] = client.client_instance_id
    pairs["client_software_name"] = client.client_software_name
    return labels(**pairs)
