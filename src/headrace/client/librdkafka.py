"""Settings and errors of all clients on confluent-kafka."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from headrace.client.addresses import BrokerUnreachable
from headrace.client.properties import InvalidProperty, for_librdkafka, unknown
from headrace.errors import HeadraceError, error_for

_UNREACHABLE = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE"})
_TIMED_OUT = frozenset({"_TIMED_OUT", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE"})
_NO_SUCH_PROPERTY = re.compile(r'No such configuration property: "(.+?)"')
_BAD_VALUE = re.compile(r"onfiguration property|^Failed to create")

# librdkafka reconnects automatically, so these errors end no work.
PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
    }
)


Client = TypeVar("Client")


class ClientFailure(HeadraceError):
    """librdkafka failed; the message has its reason."""


class TimedOut(HeadraceError, TimeoutError):
    """An operation exceeded its time limit."""


def created(make: Callable[[dict[str, Any]], Client], settings: dict[str, Any]) -> Client:
    """Create a client of confluent-kafka; invalid settings raise `InvalidProperty`.

    librdkafka reports them by its own exception, confluent-kafka by Python's.
    """
    try:
        return make(settings)
    except KafkaException as error:
        raise raised(error) from None
    except (ValueError, TypeError) as error:
        raise InvalidProperty(str(error)) from None


def client_settings(
    bootstrap: str, properties: Mapping[str, str], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return librdkafka's settings: the user's properties over our defaults.

    Its own log lines are off, because errors are returned.
    """
    return {
        "client.id": "headrace-cli",
        "log_level": 0,
        **defaults,
        **for_librdkafka(properties),
        "bootstrap.servers": bootstrap,
    }


def translated(exception: KafkaException, bootstrap: str) -> HeadraceError:
    """Translate an exception of librdkafka to a one-line error of a command."""
    error = exception.args[0]
    if error.name() in _UNREACHABLE or error.name() in _TIMED_OUT:
        return BrokerUnreachable(f"no broker of {bootstrap} answers ({error.name()[1:].lower()})")
    return exception_for(error)


def exception_for(error: KafkaError, what: str = "") -> HeadraceError:
    """Translate an error of librdkafka; a broker's code keeps its class."""
    name = error.name()
    text = f"{what}: {error.str().strip()}" if what else error.str().strip()
    if found := _NO_SUCH_PROPERTY.search(text):
        return unknown(found[1])
    if error.code() == KafkaError._INVALID_ARG and _BAD_VALUE.search(text):
        return InvalidProperty(text)
    if error.code() > 0:
        return error_for(error.code(), f"{text} ({name})")
    if name in _TIMED_OUT:
        return TimedOut(text)
    if name in _UNREACHABLE:
        return BrokerUnreachable(text)
    return ClientFailure(f"{text} ({name.lstrip('_')})")


def raised(exception: KafkaException, what: str = "") -> HeadraceError:
    """Translate an exception of librdkafka like `exception_for`."""
    return exception_for(exception.args[0], what)
