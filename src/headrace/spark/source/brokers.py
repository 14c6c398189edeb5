"""The source's client of a cluster: one per process, with cached metadata and connections.

Spark polls the latest offsets all the time, so this takes one request to each leader. Requests that
fail because the cluster has changed are retried with new metadata, with a bounded backoff and time.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from headrace.client.addresses import Address, BrokerUnreachable
from headrace.client.cluster import Cluster, NoSuchTopic, retried
from headrace.client.connection import NotKafka
from headrace.client.partitions import leader_offsets
from headrace.client.security import Security, TlsFailed
from headrace.errors import (
    KafkaError,
    LeaderNotAvailable,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import Uuid
from headrace.spark.source.client_settings import ClientSettings
from headrace.spark.source.fetching import FetchConnection
from headrace.spark.source.offsets import Positions

FIRST_PATIENCE_S = 5.0
"""The time for a cluster that has never answered; its address may be misspelt."""

_NOT_OURS = TopicAuthorizationFailed.code
_HOPELESS = (TlsFailed, NotKafka)
_CLIENTS_MAX = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's metadata."""

    name: str
    topic_id: Uuid
    leaders: Mapping[int, int]
    """The leader by partition; below 0 if there is currently no leader."""


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
        """The recent size of a record on the wire, by topic."""

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
        """Return the named topics, or all but internal ones; cached for a short time.

        A missing topic is an error unless `may_miss`.
        """
        is_fresh = time.monotonic() - self._asked_at <= self.settings.metadata_age_s_max
        if not is_fresh or names != self._asked_for:
            self._topics = self.retry(lambda: self._ask_metadata(names, may_miss=may_miss))
            self._asked_for, self._asked_at = names, time.monotonic()
            self._is_stale = False
        return list(self._topics.values())

    def topic(self, name: str) -> Topic:
        """Return one topic, from the cache if possible."""
        self.know({name})
        return self._topics[name]

    def know(self, names: Iterable[str]) -> None:
        """Ensure cached metadata of these topics, of any age until `forget_metadata`."""
        wanted = set(names)
        if self._is_stale or not wanted <= self._topics.keys():
            self._topics |= self._ask_metadata(tuple(sorted(wanted)))
            self._is_stale = False

    def name_of(self, topic_id: Uuid) -> str:
        """Return the name of the topic with an id."""
        for topic in self._topics.values():
            if topic.topic_id == topic_id:
                return topic.name
        raise UnknownTopicId("a broker returned a topic that was not requested")

    def forget_metadata(self) -> None:
        """Let the next request get new metadata."""
        self._asked_at = float("-inf")
        self._is_stale = True

    def offsets(self, timestamps: Mapping[TopicPartition, int]) -> Positions:
        """Return the first offset at or after a time, or for LATEST or EARLIEST; -1 without one.

        With `read_committed` the latest offset is that of the first open transaction.
        """
        found: Positions = {}

        def attempt() -> None:
            failure: KafkaError | None = None
            pending = {place: at for place, at in timestamps.items() if place not in found}
            for leader, share in self.by_leader(pending).items():
                failure = self._ask_offsets(leader, share, found) or failure
            if failure is not None:
                raise failure

        self.retry(attempt)
        return found

    def leader_of(self, place: TopicPartition) -> int:
        """Return the leader of a partition."""
        leaders = self.topic(place.topic).leaders
        if place.partition not in leaders:
            raise UnknownTopicOrPartition(f"{place} does not exist")
        leader = leaders[place.partition]
        if leader not in self._addresses:
            raise LeaderNotAvailable(f"{place} currently has no leader")
        return leader

    def fetcher(self, node_id: int) -> FetchConnection:
        """Return a cached connection for records, or another if a response is outstanding on it."""
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
        """Retry passing errors with new metadata, until the time is over."""

        def judged(error: KafkaError | BrokerUnreachable) -> bool:
            self.forget_metadata()
            return is_passing(error)

        result = retried(attempt, judged, self.patience_s)
        self._has_answered = True
        return result

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
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code == UnknownTopicOrPartition.code:
                if may_miss:
                    continue
                raise NoSuchTopic(name, self._cluster.topic_names())
            if names is None and (topic.is_internal or topic.error_code == _NOT_OURS):
                continue  # Patterns match authorized topics only, and no internal ones.
            if topic.error_code:
                raise error_for(topic.error_code, f"topic {name!r} cannot be read")
            leaders = {part.partition_index: part.leader_id for part in topic.partitions}
            topics[name] = Topic(name, topic.topic_id, leaders)
        return topics

    def by_leader(
        self, numbers: Mapping[TopicPartition, int]
    ) -> dict[int, dict[TopicPartition, int]]:
        """Group partitions by their leader."""
        self.know({place.topic for place in numbers})
        shares: dict[int, dict[TopicPartition, int]] = {}
        for place, number in numbers.items():
            shares.setdefault(self.leader_of(place), {})[place] = number
        return shares

    def _ask_offsets(
        self, leader: int, share: Mapping[TopicPartition, int], found: Positions
    ) -> KafkaError | None:
        failure = None
        places = {(place.topic, place.partition): at for place, at in share.items()}
        level = self.settings.isolation_level
        for place, one in leader_offsets(self._cluster, leader, places, level).items():
            if isinstance(one, KafkaError):
                failure = type(one)(f"{TopicPartition(*place)}: {one}")
            else:
                found[TopicPartition(*place)] = one.offset
        return failure


def is_passing(error: KafkaError | BrokerUnreachable) -> bool:
    """Return whether a retry may succeed."""
    if isinstance(error, KafkaError):
        return error.retriable
    return not isinstance(error, _HOPELESS)


_kept = threading.local()


def shared_brokers(properties: Mapping[str, str], patience_s: float | None = None) -> Brokers:
    """Return the client of this thread for these properties.

    Spark reuses Python workers, so connections outlive tasks.
    """
    clients: dict[frozenset[tuple[str, str]], Brokers] | None = getattr(_kept, "clients", None)
    if clients is None or _kept.process_id != os.getpid():
        # A forked process must not use its parent's sockets.
        clients = _kept.clients = {}
        _kept.process_id = os.getpid()
    key = frozenset(properties.items())
    if key not in clients:
        while len(clients) >= _CLIENTS_MAX:
            clients.pop(next(iter(clients))).close()
        clients[key] = Brokers(properties, patience_s)
    return clients[key]


def partitions_of(topics: Iterable[Topic]) -> list[TopicPartition]:
    """Return the sorted partitions of some topics."""
    return sorted(
        TopicPartition(topic.name, partition) for topic in topics for partition in topic.leaders
    )
