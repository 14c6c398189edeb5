"""The metrics of logins by listener, under Kafka's names."""

from collections.abc import Iterator, Mapping

from headrace.runtime.exposition import Family, Sample, labels
from headrace.security.sasl.reports import LoginMetrics

_PREFIX = "kafka_server_socketservermetrics"
_COUNTERS = (
    ("successful_authentication_total", "First logins on a connection.", "successes"),
    ("failed_authentication_total", "Failed first logins on a connection.", "failures"),
    ("successful_reauthentication_total", "Repeated logins.", "renewals"),
    ("failed_reauthentication_total", "Failed repeated logins.", "renewal_failures"),
    (
        "expired_connections_killed_count",
        "Connections closed after the end of their session.",
        "connections_expired",
    ),
)


def login_families(logins: Mapping[str, LoginMetrics]) -> Iterator[Family]:
    """The counters of SASL listeners; none without such a listener."""
    if not logins:
        return
    for name, help_text, field in _COUNTERS:
        yield Family(
            f"{_PREFIX}_{name}",
            "counter",
            help_text,
            [
                Sample(getattr(one, field), labels(listener=listener))
                for listener, one in logins.items()
            ],
        )
