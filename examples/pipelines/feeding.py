"""Sends an example's records to its topics, and creates missing topics.

python -m examples.pipelines.flight_status.generate --bootstrap localhost:9092
"""

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from headrace.cli.options import client_properties
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.producer import Producer
from headrace.errors import HeadraceError

PARTITIONS = 2


class Record(NamedTuple):
    """One record; those with one key keep their order."""

    topic: str
    key: str
    value: str


def event(topic: str, key: str, **fields: Any) -> Record:
    """Return a record whose value is a JSON object."""
    return Record(topic, key, json.dumps(fields, separators=(",", ":")))


def feed(
    bootstrap: str,
    records: Iterable[Record],
    topics: Iterable[str],
    *,
    per_second: float | None = None,
    client: Mapping[str, Any] | None = None,
) -> int:
    """Send the records, at once or at a rate; return their number."""
    make_topics(bootstrap, topics, client)
    began, count = time.monotonic(), 0
    with Producer({"bootstrap.servers": bootstrap, **(client or {})}) as producer:
        for count, record in enumerate(records, start=1):
            producer.send(record.topic, record.value, record.key)
            if per_second is not None and count >= (time.monotonic() - began) * per_second:
                producer.poll()
                time.sleep(1 / per_second)
    return count


def make_topics(
    bootstrap: str, topics: Iterable[str], client: Mapping[str, Any] | None = None
) -> None:
    with Admin(bootstrap, client) as admin:
        made = admin.topics.create(NewTopic(name=t, partitions=PARTITIONS) for t in topics)
    for topic in made:
        if topic.error not in (None, "TOPIC_ALREADY_EXISTS"):
            raise SystemExit(f"the topic could not be created: {topic}")


def main(
    topics: Iterable[str],
    records: Callable[[], Iterable[Record]],
    endless: Callable[[], Iterable[Record]] | None = None,
) -> None:
    """Return the command of a `generate` module; with `endless` it can also run without an end."""
    parser = argparse.ArgumentParser(description="Send the example's records to its topics.")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", metavar="HOST:PORT")
    parser.add_argument(
        "--command-config",
        default=os.environ.get("HEADRACE_COMMAND_CONFIG"),
        metavar="FILE",
        help="properties file with client settings; also from HEADRACE_COMMAND_CONFIG",
    )
    if endless is not None:
        parser.add_argument(
            "--per-second", type=float, metavar="N", help="send records without end"
        )
        parser.add_argument("--count", type=int, metavar="N", help="end after this many records")
    given = parser.parse_args()
    chosen, per_second = records(), None
    if endless is not None and (given.per_second or given.count):
        chosen, per_second = itertools.islice(endless(), given.count), given.per_second
    try:
        client = client_properties(given.command_config)
        count = feed(given.bootstrap, chosen, topics, per_second=per_second, client=client)
    except HeadraceError as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        return
    print(f"{count} records sent to {', '.join(topics)}")
