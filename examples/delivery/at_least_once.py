"""At least once: work first, then commit.

A crash between the two repeats the records in progress; no record is lost.

    python at_least_once.py localhost:9092 orders results.txt
"""

import sys
from contextlib import suppress

import headrace


def run(bootstrap: str, topic: str, path: str) -> None:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "at-least-once",
        "group.instance.id": "worker-1",  # A restarted program gets its partitions back at once.
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": 50,  # The most records that a crash repeats.
    }
    with headrace.Consumer(properties) as consumer, open(path, "ab", buffering=0) as results:
        consumer.subscribe(topic)
        while True:
            for record in consumer.poll():
                results.write((record.value() or b"") + b"\n")
            consumer.commit()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python at_least_once.py localhost:9092 orders results.txt")
    with suppress(KeyboardInterrupt):
        run(*sys.argv[1:])
