"""Consumers by name: /consumers/{group} and what their instances can be asked."""

import datetime as dt
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation, Parameter
from headrace.rest.consuming import ConsumedRecord, ConsumerInstance
from headrace.rest.errors import (
    consumer_format_mismatch,
    partition_not_found,
    unprocessable,
)
from headrace.rest.formats import V2_BODY_TYPES, V2_JSON, answer_type, wanted_formats
from headrace.rest.numbers import INT32_MAX
from headrace.rest.service import Service
from headrace.rest.v2.answers import answer, control_body, nothing, optional_body

_INT64_MAX = (1 << 63) - 1

Number = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Offset = Annotated[int, Meta(ge=0, le=_INT64_MAX - 1)]


class Place(msgspec.Struct, frozen=True):
    """A partition."""

    topic: str
    partition: Number

    def partition_of(self, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self.topic, self.partition, offset)


class PlaceOffset(msgspec.Struct, frozen=True):
    """A partition and an offset in it."""

    topic: str
    partition: Number
    offset: Offset
    metadata: str | None = None


class PlaceTime(msgspec.Struct, frozen=True):
    """A partition and a time, as 2026-03-01T12:00:00Z."""

    topic: str
    partition: Number
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
    """Topics by name, or those whose names fit a pattern."""

    topics: list[str] | None = None
    topic_pattern: str | None = None


class Topics(msgspec.Struct, frozen=True):
    topics: list[str]


class CreatedInstance(msgspec.Struct, frozen=True):
    """The instance's name, and where it can be asked: this very proxy."""

    instance_id: str
    base_uri: str


class ConsumerRoutes:
    """What instances can be asked."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        group = Parameter("group", "The consumer group.", "path")
        instance = Parameter("instance", "The instance.", "path")
        timeout = Parameter("timeout", "How many milliseconds to wait.", type="integer")
        size = Parameter("max_bytes", "How many bytes of keys and values.", type="integer")
        base = "/consumers/{group}/instances/{instance}"
        at = (group, instance)
        missing = {404: "There is no such instance at this proxy."}
        conflict = {**missing, 409: "The instance's state does not allow it."}

        def operation(method: str, path: str, endpoint: Any, text: str, **more: Any) -> Operation:
            return Operation(
                method,
                base + path,
                endpoint,
                text,
                **{"parameters": at, "errors": missing, "answer_types": (V2_JSON,), **more},
            )

        return [
            Operation(
                "POST",
                "/consumers/{group}",
                self.create,
                "Make a consumer instance.",
                parameters=(group,),
                body=dict[str, Any],
                body_types=(V2_JSON,),
                answer=CreatedInstance,
                answer_types=(V2_JSON,),
                errors={409: "The name is taken.", 422: "A property is wrong, or may not be set."},
            ),
            operation("DELETE", "", self.delete, "Delete an instance.", status=204),
            operation(
                "GET",
                "/records",
                self.records,
                "Read on.",
                parameters=(*at, timeout, size),
                answer=list[ConsumedRecord],
                answer_types=V2_BODY_TYPES,
                errors={**missing, 406: "The instance reads another form."},
            ),
            operation(
                "POST",
                "/subscription",
                self.subscribe,
                "Subscribe to topics.",
                body=Subscription,
                body_types=(V2_JSON,),
                errors=conflict,
                status=204,
            ),
            operation(
                "GET", "/subscription", self.subscription, "What is subscribed to.", answer=Topics
            ),
            operation(
                "DELETE", "/subscription", self.unsubscribe, "Subscribe to nothing.", status=204
            ),
            operation(
                "POST",
                "/assignments",
                self.assign,
                "Read these partitions, without the group.",
                body=Places,
                body_types=(V2_JSON,),
                errors=conflict,
                status=204,
            ),
            operation("GET", "/assignments", self.assignment, "What is assigned.", answer=Places),
            operation(
                "POST",
                "/positions",
                self.seek,
                "Read on at these offsets or times.",
                body=Positions,
                body_types=(V2_JSON,),
                errors=conflict,
                status=204,
            ),
            operation(
                "POST",
                "/positions/beginning",
                self.seek_to_beginning,
                "Read from the beginning.",
                body=Places,
                body_types=(V2_JSON,),
                errors=conflict,
                status=204,
            ),
            operation(
                "POST",
                "/positions/end",
                self.seek_to_end,
                "Read what comes from now on.",
                body=Places,
                body_types=(V2_JSON,),
                errors=conflict,
                status=204,
            ),
            operation(
                "POST",
                "/offsets",
                self.commit,
                "Commit offsets, or what was read.",
                parameters=(*at, Parameter("async", "true does not wait.")),
                body=Offsets,
                body_types=(V2_JSON,),
                status=204,
            ),
            operation(
                "GET",
                "/offsets",
                self.committed,
                "What is committed.",
                body=Places,
                body_types=(V2_JSON,),
                answer=Offsets,
            ),
        ]

    async def create(self, request: Request) -> Response:
        given = await optional_body(request, dict[str, Any]) or {}
        group = request.path_params["group"]
        name = self._service.instances.create(
            group, given, self._service.clients(request), self._owner(request)
        )
        base = self._base_uri(request)
        uri = f"{base}/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        return answer(request, CreatedInstance(name, uri))

    async def delete(self, request: Request) -> Response:
        path = request.path_params
        await self._service.instances.delete(path["group"], path["instance"], self._owner(request))
        return nothing()

    async def records(self, request: Request) -> Response:
        instance = self._instance(request)
        wanted = wanted_formats(request)
        if wanted is not None and wanted is not instance.settings.format:
            raise consumer_format_mismatch()
        longest_ms = instance.settings.timeout_ms
        timeout_ms = _number(request, "timeout")
        timeout_ms = longest_ms if timeout_ms <= 0 else min(timeout_ms, longest_ms)
        most = self._service.settings.consumer_request_max_bytes
        bytes_max = _number(request, "max_bytes")
        bytes_max = most if bytes_max <= 0 else min(bytes_max, most)
        found = await instance.read(timeout_ms / 1000, bytes_max)
        type = instance.settings.format.media_type if wanted is not None else answer_type(request)
        return Response(msgspec.json.encode(found), media_type=type)

    async def subscribe(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await control_body(request, Subscription)
        await instance.subscribe(given.topics, given.topic_pattern)
        return nothing()

    async def subscription(self, request: Request) -> Response:
        return answer(request, Topics(await self._instance(request).subscription()))

    async def unsubscribe(self, request: Request) -> Response:
        await self._instance(request).unsubscribe()
        return nothing()

    async def assign(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await control_body(request, Places)
        await instance.assign([one.partition_of() for one in given.partitions])
        return nothing()

    async def assignment(self, request: Request) -> Response:
        found = await self._instance(request).assignment()
        places = sorted((one.topic, one.partition) for one in found)
        return answer(request, Places([Place(*place) for place in places]))

    async def seek(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await control_body(request, Positions)
        await instance.seek(
            [TopicPartition(one.topic, one.partition, one.offset) for one in given.offsets]
        )
        await instance.seek_to_times(
            [
                (TopicPartition(one.topic, one.partition), round(one.timestamp.timestamp() * 1000))
                for one in given.timestamps
            ]
        )
        return nothing()

    async def seek_to_beginning(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await control_body(request, Places)
        await instance.seek([one.partition_of(OFFSET_BEGINNING) for one in given.partitions])
        return nothing()

    async def seek_to_end(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await control_body(request, Places)
        await instance.seek_to_end([one.partition_of() for one in given.partitions])
        return nothing()

    async def commit(self, request: Request) -> Response:
        instance = self._instance(request)
        given = await optional_body(request, Offsets)
        offsets = None
        if given is not None:
            # What is committed is the offset of a record that is done; the group reads on after it.
            offsets = [
                TopicPartition(one.topic, one.partition, one.offset + 1, one.metadata or "")
                for one in given.offsets
            ]
        is_async = request.query_params.get("async", "false").lower() == "true"
        await instance.commit(offsets, is_async=is_async)
        return nothing()

    async def committed(self, request: Request) -> Response:
        instance = self._instance(request)
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

    def _instance(self, request: Request) -> ConsumerInstance:
        path = request.path_params
        return self._service.instances.find(path["group"], path["instance"], self._owner(request))

    def _owner(self, request: Request) -> str:
        return self._service.identities.name_of(request.scope)

    def _base_uri(self, request: Request) -> str:
        url = request.base_url
        name = self._service.settings.host_name
        if name:
            url = url.replace(hostname=name)
        return str(url).rstrip("/")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "-1")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise unprocessable(f"{name} must be a number, not {text[:40]!r}")
    return int(text)
