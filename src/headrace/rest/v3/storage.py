"""Storage of version 3: log directories, and the deletion of records."""

from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.client.admin import Admin
from headrace.client.descriptions import LogDirectory
from headrace.client.partitions import HIGH_WATERMARK
from headrace.errors import OffsetOutOfRange
from headrace.rest.errors import KAFKA_BAD_REQUEST, RestError, unprocessable
from headrace.rest.numbers import INT64_MAX, Int32
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import LogDirectoryData
from headrace.rest.v3.routing import CLUSTER, TOPIC, Context, get, not_found, post
from headrace.rest.v3.topics import check_partitions


class Before(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new first offset of a partition; -1 is its end."""

    partition_id: Int32
    before_offset: Annotated[int, Meta(ge=HIGH_WATERMARK, le=INT64_MAX)]


class Deletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partitions: Annotated[list[Before], Meta(min_length=1)]


class Beginning(msgspec.Struct, frozen=True):
    partition_id: int
    earliest_offset: int


class Beginnings(msgspec.Struct, frozen=True):
    """The first offsets of partitions after a deletion."""

    topic_name: str
    data: list[Beginning]


class StorageRoutes(Routes):
    """Records and log directories on the disks of brokers."""

    @post(
        f"{TOPIC}/records:delete",
        "Delete the records of partitions before an offset.",
        errors={400: "An offset does not exist.", 422: "The body is invalid."},
    )
    async def delete_records(self, context: Context, body: Deletion) -> Beginnings:
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
        return Beginnings(context.topic, [Beginning(*one) for one in sorted(found.items())])

    @get(f"{CLUSTER}/brokers/-/log-dirs", "List the log directories of all brokers.")
    async def all_log_dirs(self, context: Context) -> list[LogDirectoryData]:
        found = await context.ask(lambda admin: admin.nodes.log_directories())
        return list(map(LogDirectoryData.of, found))

    @get(f"{CLUSTER}/brokers/{{broker_id}}/log-dirs", "List the log directories of a broker.")
    async def log_dirs(self, context: Context) -> list[LogDirectoryData]:
        number = context.number("broker_id")

        def ask(admin: Admin) -> list[LogDirectory]:
            if number not in admin.cluster.node_ids():
                raise not_found(f"Broker {number} cannot be found.")
            return admin.nodes.log_directories([number])

        return list(map(LogDirectoryData.of, await context.ask(ask)))
