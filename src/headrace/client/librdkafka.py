"""What producers and consumers on confluent-kafka have in common: settings and error texts."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException

from headrace.client.addresses import BrokerUnreachable
from headrace.errors import HeadraceError

_UNREACHABLE = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE"})


class ClientFailure(HeadraceError):
    """librdkafka gave up; the message says on what."""


def client_settings(
    bootstrap: str, properties: Mapping[str, str], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """librdkafka's settings: our defaults, and above them what the user asked for.

    Its own log lines are off: what matters comes back as an error, and is told once.
    """
    return {
        "client.id": "headrace-cli",
        "log_level": 0,
        **defaults,
        **properties,
        "bootstrap.servers": bootstrap,
    }


def translated(exception: KafkaException, bootstrap: str) -> HeadraceError:
    """The one-line error that a librdkafka exception stands for."""
    error = exception.args[0]
    if error.name() in _UNREACHABLE:
        return BrokerUnreachable(
            f"no broker of {bootstrap} answers ({error.name()[1:].lower()}); check the addresses,"
            " and the security settings in --command-config"
        )
    return ClientFailure(f"{error.str()} ({error.name().lstrip('_')})")
