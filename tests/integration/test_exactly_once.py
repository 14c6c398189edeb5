"""A consume-process-produce chain whose broker is killed again and again: every record once."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaException, Producer, TopicPartition

from tests.clients.librdkafka import (
    SECONDS_MAX,
    consumer,
    create_topic,
    numbered,
    produce,
    producer,
    read_values,
    unique_name,
)
from tests.processes.nodes import Node, eventually

StartNode = Callable[..., Node]

KILLS = int(os.environ.get("HEADRACE_KILLS", "8"))
RECORDS = 60 * KILLS
A_FEW = 20


class Chain:
    """Moves records from one topic to another, a few in each transaction.

    It keeps nothing in memory that counts: after any failure it goes on from the offset that was
    committed with the last transaction.
    """

    def __init__(self, node: Node, source: str, target: str) -> None:
        self.node = node
        self.source = source
        self.target = target
        self.name = unique_name("chain")
        self.group = f"group of {self.name}"
        self.transactions = 0
        self.is_done = False

    def run(self, end_offset: int) -> None:
        """Until the source is consumed up to an offset."""
        while True:
            with suppress(KafkaException):  # The broker is gone, or we were too slow: again.
                client = producer(
                    self.node,
                    transactional_id=self.name,
                    # Its default makes librdkafka 2.12 wait for ever for a group coordinator that
                    # it has dropped from its metadata, when all brokers were gone for a moment.
                    metadata_recovery_strategy="none",
                )
                client.init_transactions(SECONDS_MAX)
                self._move_all(client, end_offset)
                self.is_done = True
                return

    def has_moved_on(self, transactions: int) -> bool:
        return self.is_done or self.transactions > transactions

    def _move_all(self, client: Producer, end_offset: int) -> None:
        while self._move_some(client) < end_offset:
            self.transactions += 1

    def _move_some(self, client: Producer) -> int:
        """One transaction; returns the offset to go on from."""
        with consumer(self.node, group_id=self.group) as reader:
            (place,) = reader.committed([TopicPartition(self.source, 0)], SECONDS_MAX)
            reader.assign([TopicPartition(self.source, 0, max(place.offset, 0))])
            client.begin_transaction()
            try:
                taken = [one for one in reader.consume(A_FEW, 1.0) if one.error() is None]
                for number, message in enumerate(taken):
                    value = (message.value() or b"") + b"!"
                    client.produce(self.target, value, partition=number % 2)
                next_offset = max(place.offset, 0) + len(taken)
                client.send_offsets_to_transaction(
                    [TopicPartition(self.source, 0, next_offset)],
                    reader.consumer_group_metadata(),
                    SECONDS_MAX,
                )
                client.commit_transaction(SECONDS_MAX)
            except KafkaException as failure:
                if failure.args[0].txn_requires_abort():
                    client.abort_transaction(SECONDS_MAX)
                raise
            return next_offset


def test_every_record_comes_out_once(start_node: StartNode) -> None:
    """DEL-4, DEL-5: a chain under kill -9 has the same output as an undisturbed run."""
    node = start_node()
    source, target = create_topic(node), create_topic(node, partitions=2)
    produce(node, source, numbered(RECORDS))
    chain = Chain(node, source, target)
    work = threading.Thread(target=chain.run, args=(RECORDS,), daemon=True)
    work.start()
    for _ in range(KILLS):
        seen = chain.transactions
        eventually(partial(chain.has_moved_on, seen), seconds=60)
        node.kill()
        node.start()
    work.join(timeout=SECONDS_MAX * 4)
    assert not work.is_alive()
    expected = sorted((record.value or b"") + b"!" for record in numbered(RECORDS))
    found = eventually(lambda: output(node, target), expect=lambda found: len(found) >= RECORDS)
    assert found == expected


def output(node: Node, topic: str) -> list[bytes]:
    """Everything that was committed, in order of value."""
    options = {"isolation_level": "read_committed"}
    return sorted(
        value or b""
        for partition in range(2)
        for value in read_values(node, topic, partition=partition, **options)
    )
