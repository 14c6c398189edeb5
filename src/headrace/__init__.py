"""A Kafka-compatible streaming platform: clients, and the pipelines on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Message as Message
    from confluent_kafka import TopicPartition as TopicPartition

    from headrace.client.admin import Admin as Admin
    from headrace.client.async_admin import AsyncAdmin as AsyncAdmin
    from headrace.client.async_consumer import AsyncConsumer as AsyncConsumer
    from headrace.client.async_consumer import AsyncShareConsumer as AsyncShareConsumer
    from headrace.client.async_producer import AsyncDelivery as AsyncDelivery
    from headrace.client.async_producer import AsyncProducer as AsyncProducer
    from headrace.client.chunks import ChunkedRecordTooLarge as ChunkedRecordTooLarge
    from headrace.client.connection_profiles import profile as profile
    from headrace.client.consumer import CommitFailed as CommitFailed
    from headrace.client.consumer import Consumer as Consumer
    from headrace.client.consumer import DeserializationFailed as DeserializationFailed
    from headrace.client.consumer import RebalanceListener as RebalanceListener
    from headrace.client.deliveries import Delivery as Delivery
    from headrace.client.deliveries import DeliveryFailed as DeliveryFailed
    from headrace.client.descriptions import NewTopic as NewTopic
    from headrace.client.partitioners import InvalidPartition as InvalidPartition
    from headrace.client.partitioners import murmur2 as murmur2
    from headrace.client.producer import Producer as Producer
    from headrace.client.producer_transactions import TransactionAborted as TransactionAborted
    from headrace.client.properties import InvalidProperty as InvalidProperty
    from headrace.client.share_consumer import ShareConsumer as ShareConsumer
    from headrace.errors import HeadraceError as HeadraceError

# The module of each public name. Names are imported at their first use, because the broker and
# the commands import this package too, and do not need the clients.
_HOMES = {
    "Admin": "client.admin",
    "AsyncAdmin": "client.async_admin",
    "AsyncConsumer": "client.async_consumer",
    "AsyncDelivery": "client.async_producer",
    "AsyncProducer": "client.async_producer",
    "AsyncShareConsumer": "client.async_consumer",
    "ChunkedRecordTooLarge": "client.chunks",
    "CommitFailed": "client.consumer",
    "Consumer": "client.consumer",
    "Delivery": "client.deliveries",
    "DeliveryFailed": "client.deliveries",
    "DeserializationFailed": "client.consumer",
    "HeadraceError": "errors",
    "InvalidPartition": "client.partitioners",
    "InvalidProperty": "client.properties",
    "Message": "client.consumer",
    "NewTopic": "client.descriptions",
    "Producer": "client.producer",
    "RebalanceListener": "client.consumer",
    "ShareConsumer": "client.share_consumer",
    "TopicPartition": "client.consumer",
    "TransactionAborted": "client.producer_transactions",
    "murmur2": "client.partitioners",
    "profile": "client.connection_profiles",
}


if not TYPE_CHECKING:  # Type checkers must still report misspelt names.

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'headrace' has no attribute {name!r}")
        found = getattr(import_module(f"headrace.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
