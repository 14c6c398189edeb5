"""What lies on disks, in version 3: log directories, and records that are to go."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.descriptions import LogDirectory
from headrace.client.partitions import HIGH_WATERMARK
from headrace.errors import OffsetOutOfRange
from headrace.http.operations import Operation
from headrace.rest.errors import KAFKA_BAD_REQUEST, RestError, unprocessable
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    BROKER,
    CLUSTER,
    MISSING,
    TOPIC,
    Context,
    answer,
    json_body,
    not_found,
)
from headrace.rest.v3.outcomes import Partition
from headrace.rest.v3.resources import Collection, LogDirectoryData
from headrace.rest.v3.topics import check_partitions

_BASE = "/v3/clusters/{cluster_id}"


class Before(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a partition is to begin; -1 is its end."""

    partition_id: Partition
    before_offset: Annotated[int, Meta(ge=HIGH_WATERMARK, le=(1 << 63) - 1)]


class Deletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partitions: Annotated[list[Before], Meta(min_length=1)]


class Beginning(msgspec.Struct, frozen=True):
    partition_id: int
    earliest_offset: int


class Beginnings(msgspec.Struct, frozen=True):
    """Where partitions begin now."""

    topic_name: str
    data: list[Beginning]


class StorageRoutes:
    """Disks of brokers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "POST",
                f"{_BASE}/topics/{{topic_name}}/records:delete",
                self.delete_records,
                "Delete the records of partitions before an offset.",
                (CLUSTER, TOPIC),
                body=Deletion,
                answer=Beginnings,
                errors={**MISSING, 400: "There is no such offset.", 422: "The body is not right."},
            ),
            Operation(
                "GET",
                f"{_BASE}/brokers/-/log-dirs",
                self.all_log_dirs,
                "The log directories of all brokers, and what is in them.",
                (CLUSTER,),
                answer=Collection[LogDirectoryData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{_BASE}/brokers/{{broker_id}}/log-dirs",
                self.log_dirs,
                "The log directories of a broker, and what is in them.",
                (CLUSTER, BROKER),
                answer=Collection[LogDirectoryData],
                errors=MISSING,
            ),
        ]

    async def delete_records(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, Deletion)
        wanted = {one.partition_id: one.before_offset for one in body.partitions}
        if len(wanted) != len(body.partitions):
            raise unprocessable("partitions names a partition twice")

        def ask(admin: Admin) -> dict[int, int]:
            check_partitions(admin, context.topic, wanted)
            try:
                return admin.partitions.delete_records_before(context.topic, wanted)
            except OffsetOutOfRange as error:
                raise RestError(400, KAFKA_BAD_REQUEST, str(error)) from None

        found = await context.ask(ask)
        data = [Beginning(number, offset) for number, offset in sorted(found.items())]
        return answer(Beginnings(context.topic, data))

    async def all_log_dirs(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        found = await context.ask(lambda admin: admin.nodes.log_directories())
        return _shown(context, found, "-")

    async def log_dirs(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        number = context.number("broker_id")

        def ask(admin: Admin) -> list[LogDirectory]:
            if number not in admin.cluster.node_ids():
                raise not_found(f"Broker {number} cannot be found.")
            return admin.nodes.log_directories([number])

        return _shown(context, await context.ask(ask), number)


def _shown(context: Context, found: list[LogDirectory], broker: str | int) -> Response:
    data = [
        LogDirectoryData(
            metadata=context.links.metadata(
                "brokers",
                one.broker,
                "log-dirs",
                crn=f"broker={one.broker}/log-dir={one.path}",
            ),
            cluster_id=context.cluster_id,
            broker_id=one.broker,
            path=one.path,
            error=one.error,
            total_bytes=one.total_bytes,
            usable_bytes=one.usable_bytes,
            replicas=one.replicas,
        )
        for one in found
    ]
    place = ("brokers", broker, "log-dirs")
    return answer(context.links.collection("KafkaLogDirList", data, *place))
