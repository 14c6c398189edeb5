"""A cluster as a client sees it: connections by node, who leads what, and patience with it.

Every refusal that Kafka calls retriable is tried again until the time is up, with metadata asked
anew; an unanswered request is repeated only where doing it twice does no harm.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from headrace.client.addresses import Address, BrokerUnreachable, connect_any, parse_addresses
from headrace.client.connection import Connection, ConnectionLost, HungUp, Response
from headrace.client.descriptions import Outcome
from headrace.client.security import NotSpoken, Security
from headrace.errors import (
    ERROR_NAMES,
    HeadraceError,
    KafkaError,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

BACKOFF_S = 0.1
BACKOFF_MAX_S = 1.0
HANG_UPS_MAX = 4
"""How often a broker may hang up on the first request before that is taken for its answer."""

ANY_NODE = -1
_MAY_APPEAR = (0, UnknownTopicOrPartition.code, LeaderNotAvailable.code)
"""What is said of a topic that is there, or may be soon."""


class NoSuchTopic(UnknownTopicOrPartition):
    """Metadata knows no such topic: a typing error rather than news that has not spread yet."""

    retriable = False

    def __init__(self, topic: str, present: Iterable[str]) -> None:
        super().__init__(f"topic {topic!r} does not exist{near_names(topic, present)}")
        self.topic = topic


T = TypeVar("T")
Wish = TypeVar("Wish")


class Cluster:
    """The brokers behind a list of bootstrap addresses."""

    def __init__(
        self, bootstrap: str, properties: Mapping[str, Any] | None = None, timeout_s: float = 30.0
    ) -> None:
        self.timeout_s = timeout_s
        self._bootstrap = parse_addresses(bootstrap)
        self._security = Security.of(properties or {})
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, Address] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def connection(self, node_id: int = ANY_NODE) -> Connection:
        """An open connection to a node, or to whichever answered first."""
        found = self._connections.get(node_id)
        if found is None:
            found = self._connections[node_id] = self._open(node_id)
        return found

    def ask(
        self,
        request: Message,
        response: type[Response],
        node_id: int = ANY_NODE,
        timeout_s: float | None = None,
    ) -> Response:
        """Send a request to a node and wait for its answer; some may take longer than others."""
        try:
            return self.connection(node_id).call(request, response, timeout_s or self.timeout_s)
        except ConnectionLost:
            self._forget(node_id)
            raise

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Brokers and the named topics, or all of them; never creates a topic by asking."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = self.retry(lambda: self.ask(request, MetadataResponse))
        self._addresses = {
            broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers
        }
        return answer

    def name_topic(self, name: str) -> None:
        """Ask for a topic as producers do: brokers that create topics so create it."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        answer = self.retry(lambda: self.ask(request, MetadataResponse))
        code = answer.topics[0].error_code
        if code not in _MAY_APPEAR:
            raise error_for(code, f"topic {name!r}: {error_name(code)}")

    def topic(self, name: str) -> MetadataResponseTopic:
        """One topic that must be there."""
        found = self.metadata([name]).topics[0]
        if found.error_code == UnknownTopicOrPartition.code:
            present = self.topic_names()
            if name not in present:
                raise NoSuchTopic(name, present)
            found = self.metadata([name]).topics[0]  # It came to be in between.
        if found.error_code:
            raise error_for(found.error_code, f"topic {name!r}: {error_name(found.error_code)}")
        return found

    def topic_names(self) -> list[str]:
        """All topics that we may see."""
        return sorted(topic.name for topic in self.metadata().topics if topic.name)

    def explain_missing(self, outcome: Outcome) -> Outcome:
        """An outcome that says which topics there are, where its own is not among them.

        Brokers say no more than that they do not host it.
        """
        if outcome.error != ERROR_NAMES[UnknownTopicOrPartition.code]:
            return outcome
        near = near_names(outcome.name, self.topic_names())
        return msgspec.structs.replace(outcome, message=f"does not exist{near}")

    def node_ids(self) -> list[int]:
        """All brokers that are up."""
        return sorted(broker.node_id for broker in self.metadata([]).brokers)

    def retry(self, attempt: Callable[[], T], *, is_repeatable: bool = True) -> T:
        """Try until it works, or until the time is up: then the last error is raised."""
        deadline = time.monotonic() + self.timeout_s
        backoff_s = BACKOFF_S
        hang_ups_left = HANG_UPS_MAX
        while True:
            try:
                return attempt()
            except (KafkaError, ConnectionLost) as error:
                passing = is_repeatable if isinstance(error, ConnectionLost) else error.retriable
                hang_ups_left -= isinstance(error, HungUp)
                if not passing or not hang_ups_left or time.monotonic() + backoff_s > deadline:
                    raise
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    def ask_controller(self, request: Message, response: type[Response]) -> Response:
        """Send a request where changes are decided.

        With KRaft any broker forwards it; a cluster with ZooKeeper names a broker that decides.
        """
        node_id = self.metadata([]).controller_id
        return self.ask(request, response, node_id if node_id in self._addresses else ANY_NODE)

    def ask_leaders(
        self,
        topic: str,
        wishes: Mapping[int, Wish],
        ask: Callable[[int, Mapping[int, Wish]], Mapping[int, T | KafkaError]],
    ) -> dict[int, T]:
        """Put wishes for partitions to their leaders; `ask` does it for one leader's share.

        Partitions whose leader has moved are asked again; those that were answered are not.
        """
        answers: dict[int, T] = {}

        def attempt() -> None:
            pending = {index: wish for index, wish in wishes.items() if index not in answers}
            refusal: KafkaError | None = None
            for leader, share in self._by_leader(topic, pending).items():
                for index, outcome in ask(leader, share).items():
                    if isinstance(outcome, KafkaError):
                        refusal = type(outcome)(f"{topic}-{index}: {outcome}")
                    else:
                        answers[index] = outcome
            if refusal is not None:
                raise refusal

        self.retry(attempt)
        return dict(sorted(answers.items()))

    def _by_leader(self, topic: str, wishes: Mapping[int, Wish]) -> dict[int, dict[int, Wish]]:
        leaders = {part.partition_index: part.leader_id for part in self.topic(topic).partitions}
        shares: dict[int, dict[int, Wish]] = {}
        for index, wish in wishes.items():
            if index not in leaders:
                raise HeadraceError(
                    f"{topic} has no partition {index}; it has 0 to {len(leaders) - 1}"
                )
            if leaders[index] not in self._addresses:
                raise LeaderNotAvailable(f"{topic}-{index} has no leader now")
            shares.setdefault(leaders[index], {})[index] = wish
        return shares

    def _open(self, node_id: int) -> Connection:
        if node_id == ANY_NODE:
            opened, address = connect_any(self._bootstrap, self.timeout_s)
            return Connection.open(address, self._security, self.timeout_s, opened)
        if node_id not in self._addresses:
            self.metadata([])
        if node_id not in self._addresses:
            known = ", ".join(map(str, sorted(self._addresses)))
            raise BrokerUnreachable(f"there is no broker {node_id}; there are: {known}")
        return Connection.open(self._addresses[node_id], self._security, self.timeout_s)

    def _forget(self, node_id: int) -> None:
        lost = self._connections.pop(node_id, None)
        if lost is not None:
            lost.close()


def near_names(name: str, present: Iterable[str]) -> str:
    """What a misspelt name may have meant, to be appended to what is wrong with it."""
    from difflib import get_close_matches  # Only ever needed on the way to an error.

    near = get_close_matches(name, list(present), n=3, cutoff=0.6)
    return f"; near it: {', '.join(near)}" if near else ""


def check_reachable(
    bootstrap: str, properties: Mapping[str, Any] | None = None, timeout_s: float = 10.0
) -> None:
    """Fail at once and clearly where librdkafka would retry in silence.

    A login that only librdkafka can do is left to it; then the address alone is tried.
    """
    try:
        cluster = Cluster(bootstrap, properties, timeout_s)
    except NotSpoken:
        opened, _ = connect_any(parse_addresses(bootstrap), timeout_s)
        opened.close()
        return
    try:
        cluster.metadata([])
    finally:
        cluster.close()


def error_name(code: int) -> str:
    """Kafka's name of an error code."""
    return error_for(code).name
