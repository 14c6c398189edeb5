"""Where partitions are, in version 3: replicas that are moved, and leaders that are elected."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.elections import ElectionType
from headrace.client.reassignments import Reassignment
from headrace.http.operations import Operation
from headrace.rest.errors import unprocessable
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    CLUSTER,
    MISSING,
    PARTITION,
    TOPIC,
    Context,
    answer,
    json_body,
    not_found,
    nothing,
)
from headrace.rest.v3.outcomes import (
    BrokerId,
    Outcomes,
    Partition,
    PartitionName,
    check_one,
    each,
)
from headrace.rest.v3.resources import Collection, Links, ReassignmentData
from headrace.rest.v3.topics import described

_BASE = "/v3/clusters/{cluster_id}"
_PARTITIONS = f"{_BASE}/topics/{{topic_name}}/partitions"
_ONE = f"{_PARTITIONS}/{{partition_id}}/reassignment"
_AT_ONE = (CLUSTER, TOPIC, PARTITION)
_CHANGED = {**MISSING, 400: "The broker refuses it.", 422: "The body is not what it should be."}

Replicas = Annotated[list[BrokerId], Meta(min_length=1)]


class WantedReplicas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The brokers that are to have a partition; the first is the preferred leader."""

    replicas: Replicas


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition to be moved; without replicas its move is stopped."""

    topic_name: str
    partition_id: Partition
    replicas: Replicas | None


class Moves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[list[Move], Meta(min_length=1)]


class Election(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without partitions all of the cluster are meant."""

    election_type: Annotated[str, Meta(pattern="^(PREFERRED|UNCLEAN)$")] = "PREFERRED"
    partitions: Annotated[list[PartitionName], Meta(min_length=1)] | None = None


class MoveRoutes:
    """Who has partitions, and who leads them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        return [*self._looking(), *self._changing()]

    def _looking(self) -> list[Operation]:
        everything = Collection[ReassignmentData]
        return [
            Operation(
                "GET",
                f"{_BASE}/topics/-/partitions/-/reassignment",
                self.reassignments,
                "All partitions that are being moved.",
                (CLUSTER,),
                answer=everything,
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{_PARTITIONS}/-/reassignment",
                self.topic_reassignments,
                "The partitions of a topic that are being moved.",
                (CLUSTER, TOPIC),
                answer=everything,
                errors=MISSING,
            ),
            Operation(
                "GET",
                _ONE,
                self.reassignment,
                "How a partition is being moved.",
                _AT_ONE,
                answer=ReassignmentData,
                errors=MISSING,
            ),
        ]

    def _changing(self) -> list[Operation]:
        return [
            Operation(
                "POST",
                f"{_BASE}/topics/-/partitions/-/reassignment:alter",
                self.alter_reassignments,
                "Move several partitions to other brokers, or stop that.",
                (CLUSTER,),
                body=Moves,
                answer=Outcomes,
                errors=_CHANGED,
            ),
            Operation(
                "PUT",
                _ONE,
                self.reassign,
                "Move a partition to other brokers.",
                _AT_ONE,
                body=WantedReplicas,
                errors=_CHANGED,
                status=204,
            ),
            Operation(
                "DELETE",
                _ONE,
                self.cancel,
                "Stop moving a partition.",
                _AT_ONE,
                errors=_CHANGED,
                status=204,
            ),
            Operation(
                "POST",
                f"{_BASE}/leader-elections",
                self.elect_leaders,
                "Let the preferred replicas lead; UNCLEAN: any replica where none in sync is left.",
                (CLUSTER,),
                body=Election,
                answer=Outcomes,
                errors=_CHANGED,
            ),
        ]

    async def reassignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.reassignments.under_way())
        data = [_reassignment(context.links, one) for one in found]
        place = ("topics", "-", "partitions", "-", "reassignment")
        return answer(context.links.collection("KafkaReassignmentList", data, *place))

    async def topic_reassignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic = await context.ask(lambda admin: described(admin, context.topic))
        numbers = [one.partition for one in topic.partitions]
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic.name, numbers))
        data = [_reassignment(context.links, one) for one in found]
        place = ("topics", topic.name, "partitions", "-", "reassignment")
        return answer(context.links.collection("KafkaReassignmentList", data, *place))

    async def reassignment(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        topic, number = context.topic, context.number("partition_id")
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic, [number]))
        if not found:
            raise not_found(f"HTTP 404 Not Found: {topic}-{number} is not being moved")
        return answer(_reassignment(context.links, found[0]))

    async def alter_reassignments(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, Moves)
        moves = {(one.topic_name, one.partition_id): one.replicas for one in body.data}
        if len(moves) != len(body.data):
            raise unprocessable("data names a partition twice")
        return each(await context.ask(lambda admin: admin.reassignments.alter(moves)))

    async def reassign(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, WantedReplicas)
        return await self._moved(context, body.replicas)

    async def cancel(self, request: Request) -> Response:
        return await self._moved(await Context.of(self._service, request), None)

    async def elect_leaders(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, Election)
        kind, places = ElectionType[body.election_type], None
        if body.partitions is not None:
            places = [(one.topic_name, one.partition_id) for one in body.partitions]
        return each(await context.ask(lambda admin: admin.elections.hold(kind, places)))

    async def _moved(self, context: Context, replicas: list[int] | None) -> Response:
        place = (context.topic, context.number("partition_id"))
        check_one(await context.ask(lambda admin: admin.reassignments.alter({place: replicas})))
        return nothing()


def _reassignment(links: Links, one: Reassignment) -> ReassignmentData:
    place = ("topics", one.topic, "partitions", one.partition)
    crn = f"topic={one.topic}/partition={one.partition}/reassignment"
    return ReassignmentData(
        metadata=links.metadata(*place, "reassignment", crn=crn),
        cluster_id=links.cluster_id,
        topic_name=one.topic,
        partition_id=one.partition,
        adding_replicas=one.adding_replicas,
        removing_replicas=one.removing_replicas,
        replicas=links.related(*place, "replicas"),
    )
