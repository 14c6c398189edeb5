"""Reassignments of replicas and elections of leaders, of version 3."""

from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.client.elections import ElectionType
from headrace.rest.errors import unprocessable
from headrace.rest.numbers import Int32
from headrace.rest.routing import Routes
from headrace.rest.v3.outcomes import Outcomes, PartitionName, check_one, each
from headrace.rest.v3.resources import ReassignmentData
from headrace.rest.v3.routing import (
    CLUSTER,
    PARTITION,
    REJECTED,
    TOPIC,
    Context,
    delete,
    get,
    not_found,
    post,
    put,
)
from headrace.rest.v3.topics import described

Replicas = Annotated[list[Int32], Meta(min_length=1)]


class WantedReplicas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new replicas of a partition; the first is the preferred leader."""

    replicas: Replicas


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition to be moved; without replicas its reassignment is cancelled."""

    topic_name: str
    partition_id: Int32
    replicas: Replicas | None


class Moves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[list[Move], Meta(min_length=1)]


class Election(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An election for the named partitions, or for all partitions of the cluster."""

    election_type: Annotated[str, Meta(pattern="^(PREFERRED|UNCLEAN)$")] = "PREFERRED"
    partitions: Annotated[list[PartitionName], Meta(min_length=1)] | None = None


class MoveRoutes(Routes):
    """Move replicas and elect leaders."""

    @get(f"{CLUSTER}/topics/-/partitions/-/reassignment", "List all reassignments.")
    async def reassignments(self, context: Context) -> list[ReassignmentData]:
        return list(
            map(
                ReassignmentData.of,
                await context.ask(lambda admin: admin.reassignments.under_way()),
            )
        )

    @get(f"{TOPIC}/partitions/-/reassignment", "List the reassignments of a topic.")
    async def topic_reassignments(self, context: Context) -> list[ReassignmentData]:
        topic = await context.ask(lambda admin: described(admin, context.topic))
        numbers = [one.partition for one in topic.partitions]
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic.name, numbers))
        return list(map(ReassignmentData.of, found))

    @get(f"{PARTITION}/reassignment", "Describe the reassignment of a partition.")
    async def reassignment(self, context: Context) -> ReassignmentData:
        topic, number = context.topic, context.number("partition_id")
        found = await context.ask(lambda admin: admin.reassignments.under_way(topic, [number]))
        if not found:
            raise not_found(f"HTTP 404 Not Found: {topic}-{number} has no reassignment")
        return ReassignmentData.of(found[0])

    @post(
        f"{CLUSTER}/topics/-/partitions/-/reassignment:alter",
        "Start or cancel reassignments of several partitions.",
        errors=REJECTED,
        status=207,
    )
    async def alter_reassignments(self, context: Context, body: Moves) -> Outcomes:
        moves = {(one.topic_name, one.partition_id): one.replicas for one in body.data}
        if len(moves) != len(body.data):
            raise unprocessable("data names a partition twice")
        return each(await context.ask(lambda admin: admin.reassignments.alter(moves)))

    @put(f"{PARTITION}/reassignment", "Move a partition to other brokers.", errors=REJECTED)
    async def reassign(self, context: Context, body: WantedReplicas) -> None:
        await _move(context, body.replicas)

    @delete(f"{PARTITION}/reassignment", "Cancel the reassignment.", errors=REJECTED)
    async def cancel(self, context: Context) -> None:
        await _move(context, None)

    @post(
        f"{CLUSTER}/leader-elections",
        "Elect preferred leaders; with UNCLEAN any replica, if none in sync is left.",
        errors=REJECTED,
        status=207,
    )
    async def elect_leaders(self, context: Context, body: Election) -> Outcomes:
        kind, places = ElectionType[body.election_type], None
        if body.partitions is not None:
            places = [(one.topic_name, one.partition_id) for one in body.partitions]
        return each(await context.ask(lambda admin: admin.elections.hold(kind, places)))


async def _move(context: Context, replicas: list[int] | None) -> None:
    place = (context.topic, context.number("partition_id"))
    check_one(await context.ask(lambda admin: admin.reassignments.alter({place: replicas})))
