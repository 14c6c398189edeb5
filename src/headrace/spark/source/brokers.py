"""The cluster as the source sees it: one client per process, and metadata that is not asked twice.

Spark asks for the latest offsets all the time, so leaders and connections are kept: a question is
one request to each leader. What a broker refuses because the cluster has changed is asked again
with new metadata, for a bounded time and ever more slowly.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from headrace.client.addresses import Address, BrokerUnreachable
from headrace.client.cluster import Cluster, NoSuchTopic
from headrace.client.connection import NotKafka
from headrace.client.security import Security, TlsFailed
from headrace.errors import (
    KafkaError,
    LeaderNotAvailable,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.protocol.uuids import Uuid
from headrace.spark.source.client_settings import ClientSettings
from headrace.spark.source.fetching import FetchConnection
from headrace.spark.source.offsets import Positions, TopicPartition

BACKOFF_S = 0.05
BACKOFF_S_MAX = 1.0
FIRST_PATIENCE_S = 5.0
"""How long a cluster that never answered yet is tried: the address may be a typing error."""

_ORDINARY_CLIENT = -1
_NOT_OURS = TopicAuthorizationFailed.code
_HOPELESS = (TlsFailed, NotKafka)
_CLIENTS_MAX = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as metadata tells it."""

    name: str
    topic_id: Uuid
    leaders: Mapping[int, int]
    """By partition; below 0 where there is none now."""


class Brokers:
    """A client of one cluster, for one thread."""

    def __init__(self, properties: Mapping[str, str], patience_s: float | None = None) -> None:
        self.settings = ClientSettings.of(properties)
        self._cluster = Cluster(
            properties["bootstrap.servers"], properties, self.settings.request_timeout_s
        )
        self._security = Security.of(properties)
        self._patience_s = patience_s
        self._topics: dict[str, Topic] = {}
        self._asked_for: tuple[str, ...] | None = ()
        self._asked_at = float("-inf")
        self._is_stale = True
        self._addresses: dict[int, Address] = {}
        self._fetchers: dict[int, FetchConnection] = {}
        self._has_answered = False
        self.record_bytes: dict[str, float] = {}
        """What a record of a topic took on the wire lately."""

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._cluster.close()

    def topics(self, names: tuple[str, ...] | None, *, may_miss: bool = False) -> list[Topic]:
        """The named topics, or all but the cluster's own; from memory while that is not too old.

        A name that there is not is an error, unless some may be missing.
        """
        is_fresh = time.monotonic() - self._asked_at <= self.settings.metadata_age_s_max
        if not is_fresh or names != self._asked_for:
            self._topics = self.retry(lambda: self._ask_metadata(names, may_miss=may_miss))
            self._asked_for, self._asked_at = names, time.monotonic()
            self._is_stale = False
        return list(self._topics.values())

    def topic(self, name: str) -> Topic:
        """One topic, from memory if possible."""
        self.know({name})
        return self._topics[name]

    def know(self, names: Iterable[str]) -> None:
        """Have metadata of these topics, however old; who finds it wrong forgets it."""
        wanted = set(names)
        if self._is_stale or not wanted <= self._topics.keys():
            self._topics |= self._ask_metadata(tuple(sorted(wanted)))
            self._is_stale = False

    def name_of(self, topic_id: Uuid) -> str:
        """The topic with an id."""
        for topic in self._topics.values():
            if topic.topic_id == topic_id:
                return topic.name
        raise UnknownTopicId("a broker spoke of a topic that was not asked for")

    def forget_metadata(self) -> None:
        """What is known has proved wrong: the next question asks anew."""
        self._asked_at = float("-inf")
        self._is_stale = True

    def offsets(self, wishes: Mapping[TopicPartition, int]) -> Positions:
        """The first offset at or after a time, or LATEST, or EARLIEST; -1 where none is as young.

        With `read_committed` the latest offset is that of the first open transaction.
        """
        found: Positions = {}

        def attempt() -> None:
            refusal: KafkaError | None = None
            pending = {place: at for place, at in wishes.items() if place not in found}
            for leader, share in self._by_leader(pending).items():
                refusal = self._ask_offsets(leader, share, found) or refusal
            if refusal is not None:
                raise refusal

        self.retry(attempt)
        return found

    def leader_of(self, place: TopicPartition) -> int:
        """The broker to read a partition from."""
        leaders = self.topic(place.topic).leaders
        if place.partition not in leaders:
            raise UnknownTopicOrPartition(f"{place} does not exist")
        leader = leaders[place.partition]
        if leader not in self._addresses:
            raise LeaderNotAvailable(f"{place} has no leader now")
        return leader

    def fetcher(self, node_id: int) -> FetchConnection:
        """A connection for records; kept, and opened anew if an answer is outstanding on it."""
        found = self._fetchers.get(node_id)
        if found is not None and found.is_waiting:
            self.drop_fetcher(node_id)
            found = None
        if found is None:
            found = self._fetchers[node_id] = FetchConnection.to(
                self._addresses[node_id],
                self._security,
                self.settings.request_timeout_s,
                self.settings.receive_buffer_bytes,
            )
        return found

    def drop_fetcher(self, node_id: int) -> None:
        lost = self._fetchers.pop(node_id, None)
        if lost is not None:
            lost.close()

    def retry(self, attempt: Callable[[], T]) -> T:
        """Try until it works or patience ends; every further try knows the cluster anew."""
        started = time.monotonic()
        backoff_s = BACKOFF_S
        while True:
            try:
                result = attempt()
                self._has_answered = True
                return result
            except (KafkaError, BrokerUnreachable) as error:
                if not is_passing(error):
                    raise
                if time.monotonic() + backoff_s > started + self.patience_s:
                    raise
            self.forget_metadata()
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    @property
    def patience_s(self) -> float:
        if self._patience_s is not None:
            return self._patience_s
        return self.settings.patience_s if self._has_answered else FIRST_PATIENCE_S

    def _ask_metadata(
        self, names: tuple[str, ...] | None, *, may_miss: bool = False
    ) -> dict[str, Topic]:
        answer = self._cluster.metadata(names)
        self._addresses = {
            broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers
        }
        topics: dict[str, Topic] = {}
        for told in answer.topics:
            name = told.name or ""
            if told.error_code == UnknownTopicOrPartition.code:
                if may_miss:
                    continue
                raise NoSuchTopic(name, self._cluster.topic_names())
            if names is None and (told.is_internal or told.error_code == _NOT_OURS):
                continue  # A pattern chooses among what we may see, and not the cluster's books.
            if told.error_code:
                raise error_for(told.error_code, f"topic {name!r} cannot be read")
            leaders = {part.partition_index: part.leader_id for part in told.partitions}
            topics[name] = Topic(name, told.topic_id, leaders)
        return topics

    def _by_leader(
        self, wishes: Mapping[TopicPartition, int]
    ) -> dict[int, dict[TopicPartition, int]]:
        self.know({place.topic for place in wishes})
        shares: dict[int, dict[TopicPartition, int]] = {}
        for place, wish in wishes.items():
            shares.setdefault(self.leader_of(place), {})[place] = wish
        return shares

    def _ask_offsets(
        self, leader: int, share: Mapping[TopicPartition, int], found: Positions
    ) -> KafkaError | None:
        request = ListOffsetsRequest(
            replica_id=_ORDINARY_CLIENT,
            isolation_level=self.settings.isolation_level,
            topics=_asked(share),
            timeout_ms=int(self.settings.request_timeout_s * 1000),
        )
        refusal = None
        for topic in self._cluster.ask(request, ListOffsetsResponse, leader).topics:
            for part in topic.partitions:
                place = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    refusal = error_for(part.error_code, f"{place}: no offset")
                else:
                    found[place] = part.offset
        return refusal


def is_passing(error: KafkaError | BrokerUnreachable) -> bool:
    """Whether the same question may be answered later."""
    if isinstance(error, KafkaError):
        return error.retriable
    return not isinstance(error, _HOPELESS)


_kept = threading.local()


def shared_brokers(properties: Mapping[str, str], patience_s: float | None = None) -> Brokers:
    """The client of this process (and thread) for these properties; opened by the first who asks.

    Python workers are used for one task after the other: a connection outlives its task.
    """
    clients: dict[frozenset[tuple[str, str]], Brokers] | None = getattr(_kept, "clients", None)
    if clients is None or _kept.process_id != os.getpid():
        # A forked process must not speak through its parent's sockets.
        clients = _kept.clients = {}
        _kept.process_id = os.getpid()
    key = frozenset(properties.items())
    if key not in clients:
        while len(clients) >= _CLIENTS_MAX:
            clients.pop(next(iter(clients))).close()
        clients[key] = Brokers(properties, patience_s)
    return clients[key]


def _asked(share: Mapping[TopicPartition, int]) -> list[ListOffsetsTopic]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for place, timestamp in share.items():
        asked = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
        topics.setdefault(place.topic, []).append(asked)
    return [ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()]


def partitions_of(topics: Iterable[Topic]) -> list[TopicPartition]:
    """Every partition of some topics, in order."""
    return sorted(
        TopicPartition(topic.name, partition) for topic in topics for partition in topic.leaders
    )
