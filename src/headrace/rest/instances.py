"""The consumer instances of this proxy, which expire when they are not used.

An instance belongs to one process, and other proxies do not find it. So the answer to its creation
has the address of the proxy in `base_uri`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from headrace.client.async_consumer import AsyncConsumer
from headrace.client.properties import InvalidProperty
from headrace.errors import HeadraceError
from headrace.rest import overrides
from headrace.rest.clients import Clients
from headrace.rest.consuming import ConsumerInstance, InstanceSettings, Shown
from headrace.rest.errors import (
    RestError,
    consumer_already_exists,
    consumer_instance_not_found,
    invalid_consumer_config,
    unprocessable,
)
from headrace.rest.formats import V2_FORMATS, Format
from headrace.rest.numbers import whole
from headrace.rest.payloads import decode
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

_log = logging.getLogger(__name__)

_EXPIRY_CHECK_S = 0.5
_AHEAD_KILOBYTES = "16384"
"""Limit on prefetched records of an instance."""
_MIN_BYTES_MAX = 10_000_000
_TIMEOUT_MS_MAX = 600_000
_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}

Place = tuple[str, str]
"""A group and the name of an instance in it."""


class ConsumerInstances:
    """All instances, at most so many."""

    def __init__(self, settings: RestSettings, schemas: Schemas) -> None:
        self._settings = settings
        self._schemas = schemas
        self._instances: dict[Place, ConsumerInstance] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._instances)

    def create(self, group: str, given: Mapping[str, Any], clients: Clients, owner: str) -> str:
        """Create an instance, and return its name."""
        rest = dict(given)
        wanted = rest.pop("id", None) or rest.pop("name", None) or self._new_name()
        rest.pop("name", None)
        name = _checked_name(wanted)
        if (group, name) in self._instances:
            raise consumer_already_exists()
        if len(self._instances) >= self._settings.consumer_instances_max:
            raise RestError(
                503,
                50301,
                f"this proxy holds its {len(self._instances)} consumer instances"
                " (consumer.instances.max); delete one that is done",
                headers={"Retry-After": "1"},
            )
        settings = self._chosen(rest)
        properties = {
            "queued.max.messages.kbytes": _AHEAD_KILOBYTES,
            **clients.consumer_properties(),
            **_renamed(rest),
            "group.id": group,
            "default.api.timeout.ms": str(self._settings.client_timeout_ms),
        }
        self._instances[group, name] = ConsumerInstance(
            self._consumer(properties, settings.format), settings, owner
        )
        return name

    def find(self, group: str, name: str, owner: str) -> ConsumerInstance:
        """Find an instance of a caller, and restart its time to live."""
        found = self._instances.get((group, name))
        if found is None or found.owner != owner:
            raise consumer_instance_not_found()
        found.used_at = time.monotonic()
        return found

    async def delete(self, group: str, name: str, owner: str) -> None:
        instance = self.find(group, name, owner)
        del self._instances[group, name]
        await instance.close()

    @asynccontextmanager
    async def expiring(self) -> AsyncIterator[None]:
        """Close unused instances while this is open, and all of them at its end."""
        task = asyncio.create_task(self._expire())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            for place in list(self._instances):
                self._close(place)
            if self._closing:
                await asyncio.wait(self._closing, timeout=self._settings.timeout_s)

    async def _expire(self) -> None:
        lifetime_s = self._settings.consumer_instance_timeout_ms / 1000
        while True:
            await asyncio.sleep(min(_EXPIRY_CHECK_S, lifetime_s / 2))
            now = time.monotonic()
            for place, instance in list(self._instances.items()):
                if now - instance.used_at >= lifetime_s:
                    _log.info(
                        "consumer instance expired", extra={"group": place[0], "instance": place[1]}
                    )
                    self._close(place)

    def _close(self, place: Place) -> None:
        task = asyncio.create_task(_closed(self._instances.pop(place)))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _new_name(self) -> str:
        middle = f"{self._settings.id}-" if self._settings.id else ""
        return f"rest-consumer-{middle}{uuid4()}"

    def _chosen(self, rest: dict[str, Any]) -> InstanceSettings:
        """Remove the proxy's settings from the given properties; others are the consumer's."""
        min_bytes = _first(rest, "fetch.min.bytes", "responseMinBytes")
        timeout_ms = _first(rest, "consumer.request.timeout.ms", "requestWaitMs")
        return InstanceSettings(
            format=_format(rest.pop("format", None)),
            min_bytes=(
                self._settings.fetch_min_bytes if min_bytes is None else _min_bytes(min_bytes)
            ),
            timeout_ms=(
                self._settings.consumer_request_timeout_ms
                if timeout_ms is None
                else _whole("consumer.request.timeout.ms", timeout_ms, 0, _TIMEOUT_MS_MAX)
            ),
        )

    def _consumer(self, properties: Mapping[str, str], format: Format) -> AsyncConsumer:
        try:
            return AsyncConsumer(
                {"chunk.memory": "0", **properties},  # Answers have chunks as they are.
                key_deserializer=self._shown_by(format, is_key=True),
                value_deserializer=self._shown_by(format, is_key=False),
                call_timeout_s=self._settings.timeout_s,
            )
        except InvalidProperty as error:
            raise invalid_consumer_config(str(error)) from None

    def _shown_by(self, format: Format, *, is_key: bool) -> Callable[[str, bytes | None], Shown]:
        read = self._schemas.decoder(format, is_key=is_key) if format.requires_schema else None

        def show(topic: str, data: bytes | None) -> Shown:
            shown = decode(format, data) if read is None else read(data)
            return Shown(len(data or b""), shown)

        return show


async def _closed(instance: ConsumerInstance) -> None:
    try:
        await instance.close()
    except HeadraceError as error:
        _log.warning("consumer instance not closed", extra={"error": str(error)})


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or "/" in name or len(name) > 255:
        raise unprocessable("the name of an instance is text of 1 to 255 letters, without slashes")
    return name


def _renamed(rest: Mapping[str, Any]) -> dict[str, str]:
    """Return the consumer's properties under librdkafka's names, if callers may set them."""
    given = dict(rest)
    reset = given.pop("auto.offset.reset", None)
    commit = given.pop("auto.commit.enable", None)
    properties = overrides.checked(
        given, overrides.CONSUMER, invalid_consumer_config, besides=overrides.INSTANCE
    )
    if reset is not None:
        if reset not in _RESETS:
            raise invalid_consumer_config(
                f"auto.offset.reset is {reset!r}; it must be one of {', '.join(_RESETS)}"
            )
        properties["auto.offset.reset"] = _RESETS[reset]
    if commit is not None:
        text = str(commit).lower()
        if text not in ("true", "false"):
            raise invalid_consumer_config(f"auto.commit.enable is {commit!r}, not true or false")
        properties["enable.auto.commit"] = text
    return properties


def _format(given: object) -> Format:
    if given is None:
        return Format.BINARY
    found = {one.value.lower(): one for one in V2_FORMATS}
    name = str(given).lower()
    if name not in found:
        valid = ", ".join(found)
        raise unprocessable(f"Invalid format type. {name[:40]!r} is none of {valid}")
    return found[name]


def _min_bytes(given: object) -> int:
    if given in (-1, "-1"):
        return -1
    return _whole("fetch.min.bytes", given, 1, _MIN_BYTES_MAX)


def _whole(name: str, given: object, low: int, high: int) -> int:
    text = str(given)
    found = whole(text, low, high)
    if found is None:
        raise RestError(
            422,
            40001,
            "Invalid consumer configuration. It does not abide by the constraints: Invalid value"
            f" {text[:40]} for configuration {name}: it must be a number from {low} to {high}",
        )
    return found


def _first(rest: dict[str, Any], *names: str) -> object:
    """Remove these names, and return the value of the first one that has a value."""
    found = [rest.pop(name, None) for name in names]
    return next((value for value in found if value is not None), None)
