"""A whole node in the process of a test, whose authorizer the test sets, asked by calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.broker.api.records.fetch import fetch
from headrace.broker.api.records.produce import produce
from headrace.broker.api.registry import APIS, Call, Entry
from headrace.broker.api.share.share_fetch import share_fetch
from headrace.broker.direct_call import DirectCall
from headrace.broker.node import Node
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.fields import fields_of
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schemas.fetch import FetchRequest, FetchResponse
from headrace.protocol.schemas.produce import ProduceRequest, ProduceResponse
from headrace.protocol.schemas.share_fetch import ShareFetchRequest, ShareFetchResponse
from headrace.security.access import Access
from headrace.security.principals import ANONYMOUS, USER, Principal
from headrace.settings.broker_loading import load
from headrace.storage.reading import LogSlice
from headrace.storage.topic_partition import TopicPartition
from tests.builders.api_requests import TOPIC, TRANSACTION
from tests.builders.authorizers import ListedRights, Right
from tests.unit.broker.api.builders import FixedPeer

_DIRECT: dict[int, tuple[type[Message], type[Message], int]] = {
    ApiKey.PRODUCE: (ProduceRequest, ProduceResponse, 9),
    ApiKey.FETCH: (FetchRequest, FetchResponse, 12),
    ApiKey.SHARE_FETCH: (ShareFetchRequest, ShareFetchResponse, 0),
}
"""The types of APIs that answer directly, and the first version with tagged fields."""

_SMALL = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


class Answered:
    """A connection that decodes the answer of a handler that answers directly."""

    def __init__(self) -> None:
        self.host, self.listener, self.peer = "10.0.0.7", "PLAINTEXT", "10.0.0.7:40000"
        self.principal = ANONYMOUS
        self.access: Access | None = None
        self.closed = False
        self.produce_shape: Any = None
        self.renew()

    def renew(self) -> None:
        self.answered = asyncio.get_running_loop().create_future()

    def wait(self, on_abandoned: Any = None) -> None: ...

    def answer_parts(self, parts: Any) -> None:
        data = b"".join(one.read() if isinstance(one, LogSlice) else bytes(one) for one in parts)
        self.answered.set_result(data)

    finish = answer_parts

    def close(self) -> None:
        self.closed = True

    def fail(self) -> None:
        raise AssertionError("the handler has failed")


class GuardedNode:
    """A node with one topic, where every right must be granted by the test."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.broker = node.broker
        self.peer = FixedPeer()
        self.rights = ListedRights()
        self.connection = Answered()
        msgspec.structs.force_setattr(self.broker, "authorizer", self.rights)
        node.quorum_node.controller.authorizer = self.rights

    def grant(self, *rights: Right) -> None:
        self.rights.rights = rights
        self.rights.version += 1

    @contextmanager
    def client(self, name: str) -> Iterator[None]:
        """Ask as another user."""
        usual = self.peer, self.connection
        self.peer, self.connection = FixedPeer(Principal(USER, name)), Answered()
        self.connection.principal = self.peer.principal
        yield
        self.peer, self.connection = usual

    async def creates(self, name: str) -> bool:
        """Return whether a topic exists when all topics under way have been created."""
        while self.broker.topic_creation.under_way:
            await asyncio.sleep(0)
        return name in self.broker.image.topics

    async def create_topic(self, name: str = TOPIC) -> None:
        if name not in self.broker.image.topics:
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            await self.broker.controller.ask(CreateTopicsRequest([topic]))

    async def begin_transaction(self) -> None:
        """Begin a transaction in the topic."""
        transactions = self.broker.transactions
        producer = await transactions.claim(TRANSACTION, 60_000, None)
        await transactions.add(TRANSACTION, producer, {TopicPartition(TOPIC, 0)}, 0)

    async def ask(self, key: ApiKey, request: Any, version: int | None = None) -> Any:
        """Call the handler of an API with a request of the wire."""
        entry = APIS[key]
        version = entry.versions[-1] if version is None else version
        async with asyncio.timeout(20):
            if key in _DIRECT:
                return await self._ask_directly(entry, request, version)
            return await self._ask(entry, request, version)

    async def _ask(self, entry: Entry, request: Any, version: int) -> Any:
        handler = entry.handler()
        decoded = decode(handler.request_type, version, encode(request, version))
        call = Call(self.broker, self.peer, version, "unit")
        try:
            answer = handler.function(decoded, call)
            if isinstance(answer, Awaitable):
                answer = await answer
        except KafkaError as error:
            answer = handler.refuse(decoded, error, version)
        body = answer if isinstance(answer, bytes) else encode(answer, version)
        return decode(handler.response_type, version, body)

    async def _ask_directly(self, entry: Entry, request: Any, version: int) -> Any:
        request_type, response_type, flexible_from = _DIRECT[entry.key]
        connection = self.connection
        connection.renew()
        call = DirectCall(self.broker, cast(Any, connection), int(entry.key), version, 7)
        body = encode(request, version)
        if entry.key is ApiKey.PRODUCE:
            produce(memoryview(bytearray(b"eight by" + body)), 8, call)
        else:
            handler: Any = fetch if entry.key is ApiKey.FETCH else share_fetch
            handler(decode(request_type, version, body), call)
        data = memoryview(await connection.answered)
        return decode(response_type, version, data[9 if version >= flexible_from else 8 :])

    def start_produce(self, frame: bytes, version: int) -> None:
        """Begin to serve a Produce request that follows eight bytes of its frame."""
        call = DirectCall(self.broker, cast(Any, self.connection), int(ApiKey.PRODUCE), version, 7)
        produce(memoryview(bytearray(frame)), 8, call)

    @property
    def state(self) -> object:
        """All that requests could change."""
        broker = self.broker
        ends = {
            (one.topic.name, one.index): one.log.log_end_offset
            for one in broker.partitions
            if one.log is not None
        }
        groups = [sorted(one.state.groups) for one in broker.groups.shards.values()]
        return broker.image.offset, ends, groups


@asynccontextmanager
async def guarded_node(directory: Path) -> AsyncIterator[GuardedNode]:
    properties = {"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0", **_SMALL}
    node = Node(load(properties)[0], asyncio.get_running_loop())
    await node.start()
    found = GuardedNode(node)
    for coordinator in node.broker.coordinators:
        await coordinator.ensure_topic()
    await found.create_topic()
    yield found
    await node.stop()


def request_type_of(entry: Entry) -> type[Message]:
    return _DIRECT[entry.key][0] if entry.key in _DIRECT else entry.handler().request_type


def response_type_of(entry: Entry) -> type[Message]:
    return _DIRECT[entry.key][1] if entry.key in _DIRECT else entry.handler().response_type


def codes_in(answer: Any) -> Iterator[int]:
    """The error codes of a response, under all names that such a field may have."""
    for field in fields_of(type(answer)):
        value = getattr(answer, field.name)
        if field.name.endswith("error_code"):
            yield value
        elif field.structure is not None and value is not None:
            for one in value if field.is_array else [value]:
                yield from codes_in(one)
