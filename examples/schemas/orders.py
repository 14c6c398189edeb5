"""Orders with a schema: a dataclass is written as Avro, and read again as its next version.

    python examples/schemas/orders.py --bootstrap 127.0.0.1:9092 --registry http://127.0.0.1:8081

The schema is made of the class and registered with the first record. A reader that has moved on
to the next version of the class reads the same records: its new field has a default.
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import headrace
from headrace.serdes import AvroDeserializer, AvroSerializer, RegistryClient
from headrace.serdes.classes import named


@dataclass
class Order:
    id: int
    customer: str
    cents: int


@named("Order")
@dataclass
class NewerOrder:
    """The same record by its name in data, with one field more."""

    id: int
    customer: str
    cents: int
    currency: str = "EUR"


def write(bootstrap: str, topic: str, registry: RegistryClient, orders: list[Order]) -> None:
    serializer = AvroSerializer(registry, Order, id_in_header=True)
    with headrace.Producer(
        {"bootstrap.servers": bootstrap}, value_serializer=serializer
    ) as producer:
        for order in orders:
            producer.send(topic, order, key=order.customer)


def read(bootstrap: str, topic: str, registry: RegistryClient, count: int) -> list[NewerOrder]:
    deserializer = AvroDeserializer(registry, NewerOrder)
    properties = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    orders: list[NewerOrder] = []
    with headrace.Consumer(properties, value_deserializer=deserializer) as consumer:
        consumer.assign(topic)
        deadline = time.monotonic() + 30
        while len(orders) < count and time.monotonic() < deadline:
            records: Any = consumer.poll(5)
            orders += [record.value() for record in records]
    return orders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--registry", default="http://127.0.0.1:8081")
    parser.add_argument("--topic", default="typed-orders")
    given = parser.parse_args()
    orders = [Order(1, "ada", 1200), Order(2, "grace", 450)]
    with RegistryClient(given.registry) as registry:
        write(given.bootstrap, given.topic, registry, orders)
        for order in read(given.bootstrap, given.topic, registry, len(orders)):
            print(f"{order.id} {order.customer} {order.cents / 100:.2f} {order.currency}")


if __name__ == "__main__":
    main()
