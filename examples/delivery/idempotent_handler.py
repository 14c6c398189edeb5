"""An idempotent handler: at least once, and a unique key that makes a repetition harmless.

Kafka's own commits are used, so a crash repeats the records in progress. Their results have the
place of the record as a unique key, and the database ignores a second one.

    python idempotent_handler.py localhost:9092 orders results.db
"""

import sqlite3
import sys
from contextlib import suppress

import headrace

TABLE = """
CREATE TABLE IF NOT EXISTS results (
    topic TEXT, partition INTEGER, offset INTEGER, value BLOB,
    PRIMARY KEY (topic, partition, offset));
"""
ADD = "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)"


def run(bootstrap: str, topic: str, path: str) -> None:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "idempotent-handler",
        "group.instance.id": "worker-1",  # A restarted program gets its partitions back at once.
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": 50,
    }
    database = sqlite3.connect(path, timeout=30)
    database.executescript(TABLE)
    with headrace.Consumer(properties) as consumer:
        consumer.subscribe(topic)
        while True:
            records = consumer.poll()
            with database:
                for record in records:
                    place = record.topic(), record.partition(), record.offset()
                    database.execute(ADD, (*place, record.value()))
            consumer.commit()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python idempotent_handler.py localhost:9092 orders results.db")
    with suppress(KeyboardInterrupt):
        run(*sys.argv[1:])
