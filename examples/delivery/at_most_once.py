"""At most once: commit first, then work.

A crash between the two loses the records in progress; no record is processed twice.

    python at_most_once.py localhost:9092 orders results.txt
"""

import sys
from contextlib import suppress

import headrace


def run(bootstrap: str, topic: str, path: str) -> None:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "at-most-once",
        "group.instance.id": "worker-1",  # A restarted program gets its partitions back at once.
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "max.poll.records": 50,  # The most records that a crash loses.
    }
    with headrace.Consumer(properties) as consumer, open(path, "ab", buffering=0) as results:
        consumer.subscribe(topic)
        while True:
            records = consumer.poll()
            consumer.commit()
            for record in records:
                results.write((record.value() or b"") + b"\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python at_most_once.py localhost:9092 orders results.txt")
    with suppress(KeyboardInterrupt):
        run(*sys.argv[1:])
