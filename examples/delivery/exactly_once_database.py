"""Exactly once into a database: one transaction of the database stores offset and result.

Kafka's own commits are not used. A new owner of a partition reads its offset in the database. So no
record is repeated or lost by a crash, or by a move to another worker that shares the database.

    python exactly_once_database.py localhost:9092 orders results.db
"""

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress

import headrace
from headrace import TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS results (value BLOB);
CREATE TABLE IF NOT EXISTS offsets (
    topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (topic, partition));
"""
REMEMBER = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
RECALL = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"


class OffsetsInDatabase(headrace.RebalanceListener):
    """Starts each partition at the offset in the database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database

    def on_partitions_assigned(
        self, consumer: headrace.Consumer, partitions: Sequence[TopicPartition]
    ) -> None:
        for partition in partitions:
            place = (partition.topic, partition.partition)
            found = self.database.execute(RECALL, place).fetchone()
            consumer.seek(partition, found[0] if found else 0)


def run(bootstrap: str, topic: str, path: str) -> None:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "exactly-once-database",
        "group.instance.id": "worker-1",  # A restarted program gets its partitions back at once.
        "enable.auto.commit": False,  # The database commits.
        "auto.offset.reset": "earliest",
    }
    database = sqlite3.connect(path, timeout=30)
    database.executescript(TABLES)
    with headrace.Consumer(properties) as consumer:
        consumer.subscribe(topic, OffsetsInDatabase(database))
        while True:
            records = consumer.poll()
            with database:  # One transaction: all of this, or none of it.
                for record in records:
                    place = (record.topic(), record.partition(), (record.offset() or 0) + 1)
                    database.execute("INSERT INTO results VALUES (?)", (record.value(),))
                    database.execute(REMEMBER, place)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python exactly_once_database.py localhost:9092 orders results.db")
    with suppress(KeyboardInterrupt):
        run(*sys.argv[1:])
