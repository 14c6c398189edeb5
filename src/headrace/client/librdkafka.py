"""What all clients on confluent-kafka have in common: settings, and errors as exceptions."""

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

# librdkafka reconnects by itself; a broker that is away for a moment ends no work.
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
    """librdkafka gave up; the message says on what."""


class TimedOut(HeadraceError, TimeoutError):
    """It took longer than it was allowed to."""


def created(make: Callable[[dict[str, Any]], Client], settings: dict[str, Any]) -> Client:
    """A client of confluent-kafka; what is wrong with its settings is an `InvalidProperty`.

    librdkafka objects by its own exception, confluent-kafka by Python's.
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
    """librdkafka's settings: our defaults, and above them what the user asked for.

    Its own log lines are off: what matters comes back as an error, and is told once.
    """
    return {
        "client.id": "headrace-cli",
        "log_level": 0,
        **defaults,
        **for_librdkafka(properties),
        "bootstrap.servers": bootstrap,
    }


def translated(exception: KafkaException, bootstrap: str) -> HeadraceError:
    """The one-line error that a librdkafka exception of a command stands for."""
    error = exception.args[0]
    if error.name() in _UNREACHABLE or error.name() in _TIMED_OUT:
        return BrokerUnreachable(f"no broker of {bootstrap} answers ({error.name()[1:].lower()})")
    return exception_for(error)


def exception_for(error: KafkaError, what: str = "") -> HeadraceError:
    """The exception that an error of librdkafka stands for; a broker's code keeps its class."""
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
    """Like `exception_for`, for an error that comes as an exception."""
    return exception_for(exception.args[0], what)
