"""A cluster as seen by a client: connections by node, partition leaders, and retries.

Errors that Kafka calls retriable are retried with fresh metadata until the timeout. An unanswered
request is repeated only if it is safe to execute it twice.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from itertools import count
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
"""Closed first connections after which the broker counts as rejecting the connection."""

ANY_NODE = -1
_MAY_APPEAR = (0, UnknownTopicOrPartition.code, LeaderNotAvailable.code)
"""Error codes for a topic that exists, or is being created."""


class NoSuchTopic(UnknownTopicOrPartition):
    """The topic is missing in the metadata: probably misspelt."""

    retriable = False

    def __init__(self, topic: str, present: Iterable[str]) -> None:
        super().__init__(f"topic {topic!r} does not exist{near_names(topic, present)}")
        self.topic = topic


T = TypeVar("T")
Wanted = TypeVar("Wanted")


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

    @property
    def timeout_ms(self) -> int:
        return int(self.timeout_s * 1000)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def connection(self, node_id: int = ANY_NODE) -> Connection:
        """Return an open connection to a node, or to the first node that answers."""
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
        """Send a request to a node and wait for its answer, for at most `timeout_s`."""
        try:
            return self.connection(node_id).call(request, response, timeout_s or self.timeout_s)
        except ConnectionLost:
            self._forget(node_id)
            raise

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Read brokers and the named topics, or all topics; never creates a topic."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = self.retry(lambda: self.ask(request, MetadataResponse))
        self._addresses = {
            broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers
        }
        return answer

    def name_topic(self, name: str) -> None:
        """Request metadata of a topic as producers do: brokers with auto-creation create it."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        answer = self.retry(lambda: self.ask(request, MetadataResponse))
        code = answer.topics[0].error_code
        if code not in _MAY_APPEAR:
            check_code(code, subject=f"topic {name!r}")

    def topic(self, name: str) -> MetadataResponseTopic:
        """Return the metadata of an existing topic."""
        found = self.metadata([name]).topics[0]
        if found.error_code == UnknownTopicOrPartition.code:
            present = self.topic_names()
            if name not in present:
                raise NoSuchTopic(name, present)
            found = self.metadata([name]).topics[0]  # The topic was created in the meantime.
        check_code(found.error_code, subject=f"topic {name!r}")
        return found

    def topic_names(self) -> list[str]:
        """Return the names of all visible topics."""
        return sorted(topic.name for topic in self.metadata().topics if topic.name)

    def explain_missing(self, outcome: Outcome) -> Outcome:
        """Add near names to the outcome of a missing topic.

        Brokers report only that they do not host it.
        """
        if outcome.error != ERROR_NAMES[UnknownTopicOrPartition.code]:
            return outcome
        near = near_names(outcome.name, self.topic_names())
        return msgspec.structs.replace(outcome, message=f"does not exist{near}")

    def node_ids(self) -> list[int]:
        """Return the ids of all running brokers."""
        return sorted(broker.node_id for broker in self.metadata([]).brokers)

    def retry(self, attempt: Callable[[], T], *, is_repeatable: bool = True) -> T:
        """Retry until the call succeeds or the time is up; then raise the last error."""
        hang_ups = count(1)

        def is_passing(error: KafkaError | BrokerUnreachable) -> bool:
            if isinstance(error, KafkaError):
                return error.retriable
            if isinstance(error, HungUp) and next(hang_ups) == HANG_UPS_MAX:
                return False
            return is_repeatable and isinstance(error, ConnectionLost)

        return retried(attempt, is_passing, self.timeout_s)

    def query(
        self,
        request: Message,
        response: type[Response],
        node: int | Callable[[], int] = ANY_NODE,
        subject: str = "",
    ) -> Response:
        """Send a request that may be repeated, until an answer has no error.

        A function is called for each attempt, because controllers and coordinators move.
        """

        def attempt() -> Response:
            answer = self.ask(request, response, node if isinstance(node, int) else node())
            code = getattr(answer, "error_code", 0)
            check_code(code, getattr(answer, "error_message", None), subject)
            return answer

        return self.retry(attempt)

    def ask_controller(self, request: Message, response: type[Response]) -> Response:
        """Send a request to the controller, through any node if the named one just died."""
        node_id = self.controller_id()
        try:
            self.connection(node_id)
        except BrokerUnreachable:
            node_id = ANY_NODE
        return self.ask(request, response, node_id)

    def controller_id(self) -> int:
        """Return the node for requests to the controller.

        With KRaft any broker forwards them; a ZooKeeper cluster names the controller.
        """
        node_id = self.metadata([]).controller_id
        return node_id if node_id in self._addresses else ANY_NODE

    def ask_leaders(
        self,
        topic: str,
        wanted: Mapping[int, Wanted],
        ask: Callable[[int, Mapping[int, Wanted]], Mapping[int, T | KafkaError]],
    ) -> dict[int, T]:
        """Send requests for partitions to their leaders; `ask` sends one leader's share.

        Partitions whose leader has moved are retried; answered ones are not.
        """
        answers: dict[int, T] = {}

        def attempt() -> None:
            pending = {index: one for index, one in wanted.items() if index not in answers}
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

    def _by_leader(self, topic: str, wanted: Mapping[int, Wanted]) -> dict[int, dict[int, Wanted]]:
        leaders = {part.partition_index: part.leader_id for part in self.topic(topic).partitions}
        shares: dict[int, dict[int, Wanted]] = {}
        for index, one in wanted.items():
            if index not in leaders:
                raise HeadraceError(
                    f"{topic} has no partition {index}; it has 0 to {len(leaders) - 1}"
                )
            if leaders[index] not in self._addresses:
                raise LeaderNotAvailable(f"{topic}-{index} has no leader now")
            shares.setdefault(leaders[index], {})[index] = one
        return shares

    def _open(self, node_id: int) -> Connection:
        if node_id == ANY_NODE:
            opened, address = connect_any(self._bootstrap, self.timeout_s)
            return Connection.open(address, self._security, self.timeout_s, opened)
        if node_id not in self._addresses:
            self.metadata([])
        if node_id not in self._addresses:
            known = ", ".join(map(str, sorted(self._addresses)))
            raise BrokerUnreachable(f"broker {node_id} does not exist; the brokers are: {known}")
        return Connection.open(self._addresses[node_id], self._security, self.timeout_s)

    def _forget(self, node_id: int) -> None:
        lost = self._connections.pop(node_id, None)
        if lost is not None:
            lost.close()


def retried(
    attempt: Callable[[], T],
    is_passing: Callable[[KafkaError | BrokerUnreachable], bool],
    timeout_s: float,
) -> T:
    """Retry passing errors until the call succeeds or the time is up."""
    deadline = time.monotonic() + timeout_s
    backoff_s = BACKOFF_S
    while True:
        try:
            return attempt()
        except (KafkaError, BrokerUnreachable) as error:
            if not is_passing(error) or time.monotonic() + backoff_s > deadline:
                raise
        time.sleep(backoff_s)
        backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)


def near_names(name: str, present: Iterable[str]) -> str:
    """Return similar names for a misspelt one, as a suffix of an error message."""
    from difflib import get_close_matches  # Imported late: needed only for errors.

    near = get_close_matches(name, list(present), n=3, cutoff=0.6)
    return f"; near it: {', '.join(near)}" if near else ""


def check_reachable(
    bootstrap: str, properties: Mapping[str, Any] | None = None, timeout_s: float = 10.0
) -> None:
    """Fail at once with a clear error where librdkafka would retry silently.

    For a login mechanism that only librdkafka supports, only the address is checked.
    """
    try:
        cluster = Cluster(bootstrap, properties, timeout_s)
    except NotSpoken:
        opened, _ = connect_any(parse_addresses(bootstrap), timeout_s)
        opened.close()
        return
    with closing(cluster):
        cluster.metadata([])


def error_name(code: int) -> str:
    """Return Kafka's name of an error code."""
    return error_for(code).name


def outcome_of(name: str, code: int, message: str | None = None) -> Outcome:
    """Return the outcome of a change from the error code in its answer."""
    return Outcome(name=name, error=error_or_none(code), message=message)


def results(parts: Iterable[Any]) -> dict[int, Any]:
    """Return the answers about partitions by number, with errors in place of failed ones."""
    return {
        part.partition_index: error_for(part.error_code) if part.error_code else part
        for part in parts
    }


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return the numbers of partitions by topic, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(set(partitions)):
        topics.setdefault(topic, []).append(number)
    return topics


def error_or_none(code: int) -> str | None:
    """Return Kafka's name of an error code; None for success."""
    return error_name(code) if code else None


def check_code(code: int, message: str | None = None, subject: str = "") -> None:
    """Raise the error of a code other than 0; the message defaults to the error's name."""
    if code:
        text = message or error_name(code)
        raise error_for(code, f"{subject}: {text}" if subject else text)
