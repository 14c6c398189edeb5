"""Event sourcing: accounts whose only record is their history of events.

    python examples/use_cases/event_sourcing.py --bootstrap 127.0.0.1:9092 \\
        --registry http://127.0.0.1:8081

The state of any past moment is rebuilt from the events up to that moment. Snapshots shorten the
way: they have the balances, and the offsets of the next events. The first half of the events was
written before events had a channel; its readers get the default of the newer schema.
"""

import argparse
import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import headrace
from headrace import TopicPartition
from headrace.serdes import AvroDeserializer, AvroSerializer, RegistryClient
from headrace.serdes.classes import named

DATA = Path(__file__).parent / "account_events.csv"
MOMENTS = ["2026-03-02T12:00:00Z", "2026-03-31T00:00:00Z"]
SNAPSHOT_AFTER = (48, 72)
"""A snapshot is taken after this many events."""


@named("Event")
@dataclass
class FirstEvent:
    """An event before it had a channel."""

    account: str
    kind: str
    cents: int


@dataclass
class Event:
    account: str
    kind: str
    cents: int
    channel: str = "branch"


@dataclass
class State:
    """Balances of open accounts, and the offset of the next event in each partition."""

    balances: dict[str, int] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    moment_ms: int = -1

    def apply(self, event: Event) -> None:
        """Apply the next event; the only code that changes a balance."""
        match event.kind:
            case "opened":
                self.balances[event.account] = 0
            case "deposited":
                self.balances[event.account] += event.cents
            case "withdrawn":
                self.balances[event.account] -= event.cents
            case "closed":
                del self.balances[event.account]
            case unknown:
                raise ValueError(f"unknown kind of event: {unknown}")


class EventStore:
    """The topics of events and of snapshots."""

    def __init__(self, bootstrap: str, registry: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.registry = RegistryClient(registry)
        self.topic = topic
        self.snapshots = f"{topic}-snapshots"
        self.events_read = 0

    def create(self) -> None:
        """Create the topics: events are kept for ever."""
        with headrace.Admin(self.bootstrap) as admin:
            for name, partitions in ((self.topic, 3), (self.snapshots, 1)):
                topic = headrace.NewTopic(
                    name=name, partitions=partitions, configs={"retention.ms": "-1"}
                )
                admin.topics.create([topic])

    def append(self, events: list[tuple[int, Event | FirstEvent]]) -> None:
        """Append events; those of an account share a partition, so they keep their order."""
        serializer = AvroSerializer(self.registry, type(events[0][1]))
        with headrace.Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True},
            value_serializer=serializer,
        ) as producer:
            for moment_ms, event in events:
                producer.send(self.topic, event, key=event.account, timestamp_ms=moment_ms)

    def take_snapshot(self, state: State) -> None:
        with headrace.Producer(self.bootstrap) as producer:
            text = json.dumps(asdict(state))
            producer.send(self.snapshots, text, timestamp_ms=state.moment_ms)

    def state_at(self, moment_ms: int, *, with_snapshots: bool = True) -> State:
        """Rebuild the state of a moment, from the newest snapshot before it."""
        state = self._snapshot_before(moment_ms) if with_snapshots else State()
        deserializer = AvroDeserializer(self.registry, Event)
        for record in self._read(self.topic, state.offsets, deserializer):
            if record.timestamp()[1] <= moment_ms:
                state.apply(record.value())
                state.offsets[record.partition()] = record.offset() + 1
                self.events_read += 1
        state.moment_ms = moment_ms
        return state

    def events(self) -> Iterator[Event]:
        """Return all events, the older ones with the defaults of the newer schema."""
        for record in self._read(self.topic, {}, AvroDeserializer(self.registry, Event)):
            yield record.value()

    def _snapshot_before(self, moment_ms: int) -> State:
        newest = State()
        for record in self._read(self.snapshots, {}, None):
            if record.timestamp()[1] <= moment_ms:
                content = json.loads(record.value())
                offsets = {int(number): offset for number, offset in content["offsets"].items()}
                newest = State(content["balances"], offsets, content["moment_ms"])
        return newest

    def _read(self, topic: str, starts: Mapping[int, int], deserializer: Any) -> Iterator[Any]:
        """Read a topic from these offsets, or from its beginning, to its end."""
        with headrace.Consumer(self.bootstrap, value_deserializer=deserializer) as consumer:
            ends = {one.partition: consumer.bounds(one)[1] for one in consumer.partitions_of(topic)}
            left = {part for part, end in ends.items() if starts.get(part, 0) < end}
            if not left:
                return
            consumer.assign([TopicPartition(topic, part, starts.get(part, 0)) for part in left])
            for record in consumer:
                yield record
                part, offset = record.partition() or 0, record.offset() or 0
                if offset + 1 >= ends[part]:
                    left.discard(part)
                if not left:
                    return


def moment_of(text: str) -> int:
    """Return milliseconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def moment(text: str) -> str:
    """Return the text of a time, for argparse."""
    moment_of(text)
    return text


def fill(store: EventStore) -> None:
    """Write the history, half of it by the older program, and take the snapshots."""
    rows = list(csv.DictReader(DATA.read_text(encoding="utf-8").splitlines()))
    moments = [moment_of(row["at"]) for row in rows]
    old: list[tuple[int, Event | FirstEvent]] = []
    new: list[tuple[int, Event | FirstEvent]] = []
    for moment_ms, row in zip(moments, rows, strict=True):
        known = row["account"], row["kind"], int(row["cents"])
        if row["channel"]:
            new.append((moment_ms, Event(*known, row["channel"])))
        else:
            old.append((moment_ms, FirstEvent(*known)))
    store.append(old)
    store.append(new)
    for count in SNAPSHOT_AFTER:
        store.take_snapshot(store.state_at(moments[count - 1], with_snapshots=False))


def report(store: EventStore, moments: list[str]) -> dict[str, Any]:
    """Return the balances of moments, the events read for them, and the events per channel."""
    found: dict[str, Any] = {}
    for text in moments:
        store.events_read = 0
        balances = store.state_at(moment_of(text)).balances
        found[text] = {"balances": balances, "events_read": store.events_read}
    found["channels"] = dict(Counter(event.channel for event in store.events()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--registry", default="http://127.0.0.1:8081")
    parser.add_argument("--topic", default="account-events")
    parser.add_argument("--at", type=moment, nargs="*", default=MOMENTS, help="ISO 8601 times")
    given = parser.parse_args()
    store = EventStore(given.bootstrap, given.registry, given.topic)
    store.create()
    fill(store)
    print(json.dumps(report(store, given.at), indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
