"""What the proxy counts beyond its requests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.http.metrics import http_families
from headrace.runtime.exposition import Family, counter, gauge
from headrace.runtime.process import process_families

if TYPE_CHECKING:
    from headrace.rest.service import Service

_PREFIX = "headrace_rest"


def families(service: "Service") -> Iterator[Family]:
    """Everything, as it is now."""
    yield from http_families(_PREFIX, service.metrics)
    written = service.identities.written
    yield counter(f"{_PREFIX}_records_written_total", "Records that brokers took.", written.records)
    yield counter(
        f"{_PREFIX}_records_failed_total", "Records that were not written.", written.failures
    )
    yield gauge(f"{_PREFIX}_consumer_instances", "Consumer instances.", len(service.instances))
    yield gauge(f"{_PREFIX}_push_clients", "Clients of streams.", service.hub.clients)
    yield gauge(f"{_PREFIX}_push_readers", "Consumers of streams.", service.hub.readers)
    yield from _webhooks(service)
    yield from process_families()


def _webhooks(service: "Service") -> Iterator[Family]:
    done = service.subscriptions.totals()
    yield gauge(
        f"{_PREFIX}_webhook_subscriptions",
        "Subscriptions that deliver here.",
        service.subscriptions.running_count,
    )
    yield counter(
        f"{_PREFIX}_webhook_records_delivered_total", "Records that targets took.", done.delivered
    )
    yield counter(
        f"{_PREFIX}_webhook_attempts_failed_total",
        "Deliveries that were not taken.",
        done.failed_attempts,
    )
    yield counter(
        f"{_PREFIX}_webhook_dead_letters_total",
        "Records that became dead letters.",
        done.dead_letters,
    )
