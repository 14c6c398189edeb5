"""Consumer instances: /consumers/{group} and its instances."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Method, Parameter
from headrace.rest.consuming import ConsumedRecord, ConsumerInstance
from headrace.rest.errors import consumer_format_mismatch, partition_not_found, unprocessable
from headrace.rest.formats import V2_BODY_TYPES, V2_JSON, answer_type, wanted_formats
from headrace.rest.numbers import INT64_MAX, Int32
from headrace.rest.routing import Routes, operation
from headrace.rest.v2.answers import answer, control_body, optional_body

Offset = Annotated[int, Meta(ge=0, le=INT64_MAX - 1)]


class Place(msgspec.Struct, frozen=True):
    topic: str
    partition: Int32

    def partition_of(self, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self.topic, self.partition, offset)


class PlaceOffset(msgspec.Struct, frozen=True):
    """A partition and an offset in it."""

    topic: str
    partition: Int32
    offset: Offset
    metadata: str | None = None


class PlaceTime(msgspec.Struct, frozen=True):
    """A partition and a time, such as 2026-03-01T12:00:00Z."""

    topic: str
    partition: Int32
    timestamp: dt.datetime
    metadata: str | None = None


class Places(msgspec.Struct, frozen=True):
    partitions: list[Place]


class Positions(msgspec.Struct, frozen=True):
    offsets: list[PlaceOffset] = []
    timestamps: list[PlaceTime] = []


class Offsets(msgspec.Struct, frozen=True):
    offsets: list[PlaceOffset]


class Subscription(msgspec.Struct, frozen=True):
    """Topics by name, or by a pattern of names."""

    topics: list[str] | None = None
    topic_pattern: str | None = None


class Topics(msgspec.Struct, frozen=True):
    topics: list[str]


class CreatedInstance(msgspec.Struct, frozen=True):
    """The name of an instance, and its address at this proxy."""

    instance_id: str
    base_uri: str


Function = Callable[..., Awaitable[Any]]

_BASE = "/consumers/{group}/instances/{instance}"
_MISSING = {404: "The instance does not exist at this proxy."}
_CONFLICT = {**_MISSING, 409: "The instance's state does not allow it."}


def _control(
    method: str,
    path: str,
    summary: str,
    *query: Parameter,
    errors: Mapping[int, str] = _MISSING,
    **details: Any,
) -> Callable[[Method], Method]:
    status = 200 if method == "GET" else 204
    types = {"body_types": (V2_JSON,), "answer_types": (V2_JSON,), "status": status}
    return operation(method, _BASE + path, summary, *query, errors=errors, **(types | details))


def _change(path: str, summary: str, body: type) -> Callable[[Function], Function]:
    """Declare a change of an instance by a method that receives the instance and the body."""

    def mark(function: Function) -> Function:
        @wraps(function)
        async def endpoint(self: "ConsumerRoutes", request: Request) -> Response:
            instance = self.instance(request)
            await function(self, instance, await control_body(request, body))
            return _no_content()

        return _control("POST", path, summary, body=body, errors=_CONFLICT)(endpoint)

    return mark


class ConsumerRoutes(Routes):
    """Create, use and delete consumer instances."""

    @operation(
        "POST",
        "/consumers/{group}",
        "Create a consumer instance.",
        body=dict[str, Any],
        body_types=(V2_JSON,),
        answer=CreatedInstance,
        answer_types=(V2_JSON,),
        errors={409: "The name is taken.", 422: "A property is invalid, or cannot be set."},
    )
    async def create(self, request: Request) -> Response:
        given = await optional_body(request, dict[str, Any]) or {}
        group = request.path_params["group"]
        name = self.service.instances.create(
            group, given, self.service.clients(request), self._owner(request)
        )
        base = self._base_uri(request)
        uri = f"{base}/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        return answer(request, CreatedInstance(name, uri))

    @_control("DELETE", "", "Delete an instance.")
    async def delete(self, request: Request) -> Response:
        path = request.path_params
        await self.service.instances.delete(path["group"], path["instance"], self._owner(request))
        return _no_content()

    @_control(
        "GET",
        "/records",
        "Read the next records.",
        Parameter("timeout", "Milliseconds to wait.", type="integer"),
        Parameter("max_bytes", "Maximum bytes of keys and values.", type="integer"),
        answer=list[ConsumedRecord],
        answer_types=V2_BODY_TYPES,
        errors={**_MISSING, 406: "The instance reads another format."},
    )
    async def records(self, request: Request) -> Response:
        instance = self.instance(request)
        wanted = wanted_formats(request)
        if wanted is not None and wanted is not instance.settings.format:
            raise consumer_format_mismatch()
        timeout_ms = _number(request, "timeout", instance.settings.timeout_ms)
        size_max = _number(request, "max_bytes", self.service.settings.consumer_request_max_bytes)
        found = await instance.read(timeout_ms / 1000, size_max)
        type = instance.settings.format.media_type if wanted is not None else answer_type(request)
        return Response(msgspec.json.encode(found), media_type=type)

    @_change("/subscription", "Subscribe to topics.", Subscription)
    async def subscribe(self, instance: ConsumerInstance, given: Subscription) -> None:
        await instance.subscribe(given.topics, given.topic_pattern)

    @_control("GET", "/subscription", "List the subscribed topics.", answer=Topics)
    async def subscription(self, request: Request) -> Response:
        return answer(request, Topics(await self.instance(request).subscription()))

    @_control("DELETE", "/subscription", "Unsubscribe from all topics.")
    async def unsubscribe(self, request: Request) -> Response:
        await self.instance(request).unsubscribe()
        return _no_content()

    @_change("/assignments", "Assign partitions without the group.", Places)
    async def assign(self, instance: ConsumerInstance, given: Places) -> None:
        await instance.assign([one.partition_of() for one in given.partitions])

    @_control("GET", "/assignments", "List the assigned partitions.", answer=Places)
    async def assignment(self, request: Request) -> Response:
        found = await self.instance(request).assignment()
        places = sorted((one.topic, one.partition) for one in found)
        return answer(request, Places([Place(*place) for place in places]))

    @_change("/positions", "Seek to offsets or times.", Positions)
    async def seek(self, instance: ConsumerInstance, given: Positions) -> None:
        await instance.seek(
            [TopicPartition(one.topic, one.partition, one.offset) for one in given.offsets]
        )
        await instance.seek_to_times(
            [
                (TopicPartition(one.topic, one.partition), round(one.timestamp.timestamp() * 1000))
                for one in given.timestamps
            ]
        )

    @_change("/positions/beginning", "Seek to the beginning.", Places)
    async def seek_to_beginning(self, instance: ConsumerInstance, given: Places) -> None:
        await instance.seek([one.partition_of(OFFSET_BEGINNING) for one in given.partitions])

    @_change("/positions/end", "Seek to the end.", Places)
    async def seek_to_end(self, instance: ConsumerInstance, given: Places) -> None:
        await instance.seek_to_end([one.partition_of() for one in given.partitions])

    @_control(
        "POST",
        "/offsets",
        "Commit offsets, or all records that were read.",
        Parameter("async", "true does not wait."),
        body=Offsets,
    )
    async def commit(self, request: Request) -> Response:
        instance = self.instance(request)
        given = await optional_body(request, Offsets)
        offsets = None
        if given is not None:
            # A caller commits the offset of a processed record; the group continues after it.
            offsets = [
                TopicPartition(one.topic, one.partition, one.offset + 1, one.metadata or "")
                for one in given.offsets
            ]
        is_async = request.query_params.get("async", "false").lower() == "true"
        await instance.commit(offsets, is_async=is_async)
        return _no_content()

    @_control("GET", "/offsets", "List committed offsets.", body=Places, answer=Offsets)
    async def committed(self, request: Request) -> Response:
        instance = self.instance(request)
        given = await optional_body(request, Places)
        if given is None:
            raise partition_not_found()
        found = await instance.committed([one.partition_of() for one in given.partitions])
        offsets = [
            PlaceOffset(one.topic, one.partition, one.offset, one.metadata or "")
            for one in found
            if one.offset >= 0
        ]
        return answer(request, Offsets(offsets))

    def instance(self, request: Request) -> ConsumerInstance:
        path = request.path_params
        return self.service.instances.find(path["group"], path["instance"], self._owner(request))

    def _owner(self, request: Request) -> str:
        return self.service.identities.name_of(request.scope)

    def _base_uri(self, request: Request) -> str:
        url = request.base_url
        name = self.service.settings.host_name
        if name:
            url = url.replace(hostname=name)
        return str(url).rstrip("/")


def _no_content() -> Response:
    return Response(status_code=204)


def _number(request: Request, name: str, limit: int) -> int:
    """Return a parameter up to its limit; the limit is also the default."""
    text = request.query_params.get(name, "-1")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise unprocessable(f"{name} must be a number, not {text[:40]!r}")
    number = int(text)
    return limit if number <= 0 else min(number, limit)
