"""Topics, partitions and brokers of version 2."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.descriptions import PartitionDescription, TopicDescription
from headrace.client.partitions import EARLIEST, LATEST
from headrace.http.operations import Method
from headrace.rest.errors import failure_of, partition_not_found, topic_not_found
from headrace.rest.formats import V2_JSON
from headrace.rest.routing import Routes, operation
from headrace.rest.v2.answers import answer
from headrace.rest.v2.produce import partition_in

_PARTITION = "/topics/{topic}/partitions/{partition}"
_MISSING = {404: "The topic or partition does not exist."}
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION")


class Replica(msgspec.Struct, frozen=True):
    broker: int
    leader: bool
    in_sync: bool


class PartitionAnswer(msgspec.Struct, frozen=True):
    partition: int
    leader: int
    replicas: list[Replica]


class TopicAnswer(msgspec.Struct, frozen=True):
    name: str
    configs: dict[str, str | None]
    partitions: list[PartitionAnswer]


class OffsetsAnswer(msgspec.Struct, frozen=True):
    beginning_offset: int
    end_offset: int


class BrokersAnswer(msgspec.Struct, frozen=True):
    brokers: list[int]


def _read(path: str, summary: str, answer: Any) -> Callable[[Method], Method]:
    return operation("GET", path, summary, answer=answer, answer_types=(V2_JSON,), errors=_MISSING)


class TopicRoutes(Routes):
    """Describe topics, partitions and brokers."""

    @_read("/topics", "List the names of topics.", list[str])
    async def all(self, request: Request) -> Response:
        names = await self.service.clients(request).admin.run(
            lambda admin: admin.cluster.topic_names()
        )
        return answer(request, names)

    @_read("/topics/{topic}", "Describe a topic with its configs and partitions.", TopicAnswer)
    async def topic(self, request: Request) -> Response:
        name = request.path_params["topic"]

        def ask(admin: Admin) -> TopicAnswer:
            found = described(admin, name)
            entries = admin.configs.describe("topic", name)
            return TopicAnswer(
                name,
                {entry.name: entry.value for entry in entries},
                [_partition(one) for one in found.partitions],
            )

        return answer(request, await self.service.clients(request).admin.run(ask))

    @_read("/topics/{topic}/partitions", "List the partitions of a topic.", list[PartitionAnswer])
    async def partitions(self, request: Request) -> Response:
        found = await self._described(request)
        return answer(request, [_partition(one) for one in found.partitions])

    @_read(_PARTITION, "Describe a partition.", PartitionAnswer)
    async def partition(self, request: Request) -> Response:
        number = partition_in(request)
        found = await self._described(request)
        for one in found.partitions:
            if one.partition == number:
                return answer(request, _partition(one))
        raise partition_not_found()

    @_read(f"{_PARTITION}/offsets", "Read the first and the end offset.", OffsetsAnswer)
    async def offsets(self, request: Request) -> Response:
        name, number = request.path_params["topic"], partition_in(request)

        def ask(admin: Admin) -> OffsetsAnswer:
            found = described(admin, name)
            if all(one.partition != number for one in found.partitions):
                raise partition_not_found()
            (first,) = admin.partitions.offsets(name, EARLIEST, [number])
            (end,) = admin.partitions.offsets(name, LATEST, [number])
            return OffsetsAnswer(first.offset, end.offset)

        return answer(request, await self.service.clients(request).admin.run(ask))

    @_read("/brokers", "List the ids of brokers.", BrokersAnswer)
    async def brokers(self, request: Request) -> Response:
        ids = await self.service.clients(request).admin.run(lambda admin: admin.cluster.node_ids())
        return answer(request, BrokersAnswer(ids))

    async def _described(self, request: Request) -> TopicDescription:
        name = request.path_params["topic"]
        return await self.service.clients(request).admin.run(lambda admin: described(admin, name))


def described(admin: Admin, name: str) -> TopicDescription:
    """Describe a topic that must exist."""
    found, failed = admin.topics.describe([name])
    if found:
        return found[0]
    if failed[0].error in _NO_TOPIC:
        raise topic_not_found()
    raise failure_of(failed[0])


def _partition(one: PartitionDescription) -> PartitionAnswer:
    leader = -1 if one.leader is None else one.leader
    replicas = [
        Replica(broker, broker == leader, broker in one.isr) for broker in sorted(one.replicas)
    ]
    return PartitionAnswer(one.partition, leader, replicas)
