"""A commit log: a SQLite table kept equal on several replicas by a compacted topic.

    python examples/use_cases/commit_log.py write --bootstrap 127.0.0.1:9092
    python examples/use_cases/commit_log.py replicate one.db --bootstrap 127.0.0.1:9092

The topic has the last change of every row, by the row's key. A replica stores each change with its
offset in one transaction of SQLite. So a crash repeats nothing, a restart continues at the stored
offset, and a lost replica is rebuilt from the topic, also after compaction.
"""

import argparse
import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import headrace
from headrace import Message, TopicPartition

DATA = Path(__file__).parent / "product_changes.csv"
TABLES = """
CREATE TABLE IF NOT EXISTS products (product TEXT PRIMARY KEY, cents INTEGER, stock INTEGER);
CREATE TABLE IF NOT EXISTS offsets (partition INTEGER PRIMARY KEY, next INTEGER);
"""
PUT = "INSERT OR REPLACE INTO products VALUES (?, ?, ?)"
DELETE = "DELETE FROM products WHERE product = ?"
REMEMBER = "INSERT OR REPLACE INTO offsets VALUES (?, ?)"
SUMMARY = "SELECT count(*), coalesce(sum(cents * stock), 0) FROM products"


def create(bootstrap: str, topic: str, **configs: str) -> None:
    """Create the log: compacted, so that it has the last change of each row for ever."""
    given = {name.replace("_", "."): value for name, value in configs.items()}
    new = headrace.NewTopic(
        name=topic, partitions=2, configs={"cleanup.policy": "compact", **given}
    )
    with headrace.Admin(bootstrap) as admin:
        admin.topics.create([new])


def write(bootstrap: str, topic: str) -> None:
    """Write the changes of the data; a deletion is a record without a value."""
    properties = {"bootstrap.servers": bootstrap, "enable.idempotence": True}
    with DATA.open(encoding="utf-8") as data, headrace.Producer(properties) as producer:
        for row in csv.DictReader(data):
            value = None
            if row["op"] == "put":
                value = json.dumps({"cents": int(row["cents"]), "stock": int(row["stock"])})
            producer.send(topic, value, key=row["product"])


class Replica:
    """A copy of the table."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, timeout=30)
        self.database.executescript(TABLES)

    def follow(self, bootstrap: str, topic: str, is_over: Callable[[], bool]) -> None:
        """Apply changes from the stored offsets on."""
        with headrace.Consumer(bootstrap) as consumer:
            known = dict(self.database.execute("SELECT partition, next FROM offsets"))
            parts = [part.partition for part in consumer.partitions_of(topic)]
            consumer.assign([TopicPartition(topic, part, known.get(part, 0)) for part in parts])
            while not is_over():
                records = consumer.poll(0.2)
                with self.database:  # One transaction: changes and offsets.
                    for record in records:
                        self.apply(record)

    def apply(self, record: Message) -> None:
        key = (record.key() or b"").decode()
        value = record.value()
        if value is None:
            self.database.execute(DELETE, (key,))
        else:
            row = json.loads(value)
            self.database.execute(PUT, (key, row["cents"], row["stock"]))
        self.database.execute(REMEMBER, (record.partition(), (record.offset() or 0) + 1))

    def summary(self) -> tuple[int, int]:
        """Return the number of rows, and the value of the stock in cents."""
        rows, cents = self.database.execute(SUMMARY).fetchone()
        return int(rows), int(cents)

    def is_at_end(self, bootstrap: str, topic: str) -> bool:
        """Return whether the replica has all records of the log."""
        known = dict(self.database.execute("SELECT partition, next FROM offsets"))
        with headrace.Consumer(bootstrap) as consumer:
            ends = {one.partition: consumer.bounds(one)[1] for one in consumer.partitions_of(topic)}
        return all(known.get(part, 0) >= end for part, end in ends.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["create", "write", "replicate", "show"])
    parser.add_argument("path", nargs="?", default="products.db")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="products-log")
    given = parser.parse_args()
    match given.command:
        case "create":
            create(given.bootstrap, given.topic)
        case "write":
            create(given.bootstrap, given.topic)
            write(given.bootstrap, given.topic)
        case "replicate":
            with suppress(KeyboardInterrupt):
                Replica(given.path).follow(given.bootstrap, given.topic, lambda: False)
        case "show":
            if not Path(given.path).exists():
                parser.error(f"{given.path} does not exist; `replicate` makes it")
            replica = Replica(given.path)
            with closing(replica.database):
                rows, cents = replica.summary()
                print(f"{rows} products, worth {cents / 100:.2f}")


if __name__ == "__main__":
    main()
