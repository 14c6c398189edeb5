"""Exactly once from topic to topic: results and offsets in one transaction of Kafka's.

A crash leaves an open transaction. The next run takes over the transactional id, which aborts that
transaction, and continues at the last committed offset. Consumers with `isolation.level`
`read_committed` (librdkafka's default) read each result exactly once.

    python exactly_once_transaction.py localhost:9092 orders results
"""

import sys
from contextlib import suppress

import headrace


def run(bootstrap: str, source: str, target: str) -> None:
    reading = {
        "bootstrap.servers": bootstrap,
        "group.id": "exactly-once",
        "group.instance.id": "worker-1",  # A restarted program gets its partitions back at once.
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,  # The transaction commits.
        "max.poll.records": 50,
    }
    writing = {"bootstrap.servers": bootstrap, "transactional.id": "exactly-once-worker-1"}
    with headrace.Producer(writing) as producer, headrace.Consumer(reading) as consumer:
        consumer.subscribe(source)
        while True:
            if records := consumer.poll():
                try:
                    with producer.transaction(consumer):
                        for record in records:
                            producer.send(target, record.value(), record.key())
                except headrace.TransactionAborted:
                    pass  # Nothing of it is visible, and the consumer reads the same again.


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python exactly_once_transaction.py localhost:9092 orders results")
    with suppress(KeyboardInterrupt):
        run(*sys.argv[1:])
