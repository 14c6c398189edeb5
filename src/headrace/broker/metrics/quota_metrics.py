"""Metrics of quotas under Kafka's names, for the owners that were used last."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.runtime.exposition import Family, Sample, gauge, labels

if TYPE_CHECKING:
    from headrace.broker.client_quotas import ClientQuotas, OwnerFigures
    from headrace.broker.connection_rates import ConnectionRates
    from headrace.broker.replication_throttles import ReplicationThrottles

OWNERS_MAX = 200
"""The owners of each kind of quota on a page."""


def client_quota_families(quotas: "ClientQuotas", now_ms: int) -> Iterator[Family]:
    """Rate and mean throttle time of each owner of a quota."""
    for prefix, rate, help_text, kind in (
        ("produce", "byte_rate", "Bytes per second that were produced.", quotas.produce),
        ("fetch", "byte_rate", "Bytes per second that were fetched.", quotas.fetch),
        ("request", "request_time", "Percentage of the event loop's time.", quotas.request),
    ):
        figures = list(kind.figures(now_ms, OWNERS_MAX))
        yield _by_owner(f"kafka_server_{prefix}_{rate}", help_text, figures, "rate")
        name = f"kafka_server_{prefix}_throttle_time"
        yield _by_owner(name, "Mean throttle time in milliseconds.", figures, "throttle_ms")


def replication_families(throttles: "ReplicationThrottles") -> Iterator[Family]:
    """Rates of throttled replicas."""
    for direction, throttle in (("leader", throttles.leader), ("follower", throttles.follower)):
        name = f"kafka_server_{direction}replication_byte_rate"
        yield gauge(name, "Bytes per second of throttled replicas.", throttle.rate())


def connection_rate_families(rates: "ConnectionRates", now_ms: int) -> Iterator[Family]:
    """Throttle times of listeners."""
    yield Family(
        "kafka_server_socketservermetrics_connection_accept_throttle_time",
        "gauge",
        "Mean time in milliseconds for which a listener accepted no connection.",
        [
            Sample(delays.measure(now_ms), labels(listener=listener))
            for listener, delays in rates.delays.items()
        ],
    )


def _by_owner(name: str, text: str, figures: "Iterable[OwnerFigures]", field: str) -> Family:
    samples = [
        Sample(getattr(one, field), labels(user=one.user, client_id=one.client_id))
        for one in figures
    ]
    return Family(name, "gauge", text, samples)
