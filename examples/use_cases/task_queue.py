"""A task queue as of RabbitMQ: workers, retries after growing delays, and dead letters.

    python examples/use_cases/task_queue.py setup --bootstrap 127.0.0.1:9092
    python examples/use_cases/task_queue.py put --bootstrap 127.0.0.1:9092
    python examples/use_cases/task_queue.py work sent.db --bootstrap 127.0.0.1:9092
    python examples/use_cases/task_queue.py delay --number 0 --bootstrap 127.0.0.1:9092
    python examples/use_cases/task_queue.py delay --number 1 --bootstrap 127.0.0.1:9092
    python examples/use_cases/task_queue.py letters --bootstrap 127.0.0.1:9092

Workers are members of a share group, so each task goes to one of them, and to another if that one
dies. A task that fails for now is copied to the topic of its delay. A program `delay` for each
delay puts it back into the queue when its time has come. After the last delay, or if a task is
invalid, the worker rejects it, and the broker writes it to the dead letter topic.
"""

import argparse
import csv
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import headrace
from headrace.client.descriptions import ConfigChange

DATA = Path(__file__).parent / "mails.csv"
DELAYS_S = (0.2, 0.6)
ATTEMPT = "attempt"
SENT = """
CREATE TABLE IF NOT EXISTS sent (id TEXT PRIMARY KEY, address TEXT, attempt INTEGER);
"""


class Busy(Exception):
    """A failure that may pass."""


class Invalid(Exception):
    """A failure that will not pass."""


class Queue:
    """The topics of one queue, and its group of workers."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.retries = [f"{name}.retry-{number}" for number in range(len(DELAYS_S))]
        self.letters = f"dlq.{name}"

    def create(self) -> None:
        """Create the topics; the group begins with the oldest task, and has dead letters."""
        letters = headrace.NewTopic(
            name=self.letters,
            partitions=1,
            configs={"errors.deadletterqueue.group.enable": "true"},
        )
        others = [headrace.NewTopic(name=name, partitions=1) for name in (self.name, *self.retries)]
        settings = {
            "share.auto.offset.reset": "earliest",
            "errors.deadletterqueue.topic.name": self.letters,
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        changes = [ConfigChange(name=k, operation="set", value=v) for k, v in settings.items()]
        with headrace.Admin(self.bootstrap) as admin:
            admin.topics.create([letters, *others])
            admin.configs.alter("group", self.name, changes)

    def put(self) -> None:
        """Put the tasks of the data into the queue."""
        with DATA.open(encoding="utf-8") as data, headrace.Producer(self.bootstrap) as producer:
            for row in csv.DictReader(data):
                headers = {"behaviour": row["behaviour"]}
                producer.send(self.name, row["to"], key=row["id"], headers=headers)

    def work(self, path: str, is_over: Callable[[], bool]) -> None:
        """Do tasks until the end; every result is in the database once."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.name,
            "share.acknowledgement.mode": "explicit",
        }
        database = sqlite3.connect(path, timeout=30)
        database.executescript(SENT)
        with (
            headrace.Producer(self.bootstrap) as producer,
            headrace.ShareConsumer(settings) as worker,
        ):
            worker.subscribe(self.name)
            while not is_over():
                for task in worker.poll(0.2):
                    self._do(task, database, worker, producer)

    def delay(self, number: int, is_over: Callable[[], bool]) -> None:
        """Move tasks back into the queue after their delay, each exactly once."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.retries[number],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.records": 1,
        }
        moves = {"bootstrap.servers": self.bootstrap, "transactional.id": self.retries[number]}
        with headrace.Consumer(settings) as consumer, headrace.Producer(moves) as producer:
            consumer.subscribe(self.retries[number])
            while not is_over():
                for task in consumer.poll(0.2):
                    due_s = task.timestamp()[1] / 1000 + DELAYS_S[number]
                    time.sleep(max(0.0, due_s - time.time()))
                    with producer.transaction(consumer):
                        producer.send(self.name, task.value(), task.key(), headers=task.headers())

    def _do(
        self,
        task: Any,
        database: sqlite3.Connection,
        worker: headrace.ShareConsumer,
        producer: headrace.Producer,
    ) -> None:
        headers = dict(task.headers())
        attempt = int(headers.get(ATTEMPT, b"1"))
        try:
            with database:  # A task that comes twice is stored once.
                send_mail(headers["behaviour"].decode(), attempt)
                row = (task.key().decode(), task.value().decode(), attempt)
                database.execute("INSERT OR IGNORE INTO sent VALUES (?, ?, ?)", row)
            worker.accept(task)
        except Busy:
            if attempt > len(DELAYS_S):
                worker.reject(task)
            else:
                later = {**headers, ATTEMPT: str(attempt + 1)}
                topic = self.retries[attempt - 1]
                # The copy is acknowledged before the task is accepted, so a crash loses neither.
                producer.send(topic, task.value(), task.key(), headers=later).result()
                worker.accept(task)
        except Invalid:
            worker.reject(task)


def send_mail(behaviour: str, attempt: int) -> None:
    """Fail as the data wants it: `ok`, `invalid`, or `busy 2` for the first two attempts."""
    kind, _, times = behaviour.partition(" ")
    if kind == "invalid":
        raise Invalid
    if kind == "busy" and attempt <= int(times):
        raise Busy


def read_all(bootstrap: str, topic: str) -> Iterator[Any]:
    """Read the records of a topic with one partition, to its end."""
    with headrace.Consumer({"bootstrap.servers": bootstrap}) as consumer:
        (part,) = consumer.partitions_of(topic)
        end = consumer.bounds(part)[1]
        consumer.assign([headrace.TopicPartition(topic, 0, 0)])
        while end and (consumer.position(part) or 0) < end:
            yield from consumer.poll()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["setup", "put", "work", "delay", "letters"])
    parser.add_argument("path", nargs="?", default="sent.db")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--name", default="mails")
    parser.add_argument(
        "--number", type=int, choices=range(len(DELAYS_S)), help="which of the delays, for `delay`"
    )
    given = parser.parse_args()
    if given.command == "delay" and given.number is None:
        parser.error("give --number; each delay needs a program of its own")
    queue = Queue(given.bootstrap, given.name)
    with suppress(KeyboardInterrupt):
        match given.command:
            case "setup":
                queue.create()
            case "put":
                queue.put()
            case "work":
                queue.work(given.path, lambda: False)
            case "delay":
                queue.delay(given.number, lambda: False)
            case "letters":
                for letter in read_all(given.bootstrap, queue.letters):
                    reason = dict(letter.headers())["__dlq.errors.message"].decode()
                    print(letter.value().decode(), reason)


if __name__ == "__main__":
    main()
