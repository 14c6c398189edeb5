"""Schemas of a registry by id, by version, by text, or the latest of a subject.

Requests to the registry run in a few threads, with the time limit of requests to brokers. Schemas
by id never change, so they are cached without a limit of time; other lookups expire.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from headrace.rest.errors import (
    bad_request,
    invalid_payload,
    invalid_schema,
    json_conversion,
    registry_failed,
    serialization_failed,
)
from headrace.rest.formats import Format
from headrace.rest.schema_codecs import FORMATS, SCHEMA_TYPES, Codec, codec_of
from headrace.rest.settings import RestSettings
from headrace.schema_clients.registry_client import (
    NewSchema,
    RegisteredSchema,
    RegistryClient,
    RegistryFailure,
    RegistryRefusal,
    RegistryUnavailable,
)
from headrace.serdes.payload_errors import CorruptPayload, PayloadError
from headrace.serdes.schemas import InvalidSchema, SchemaType
from headrace.serdes.subject_strategies import (
    NoSubject,
    SubjectName,
    record_subject,
    topic_record_subject,
    topic_subject,
)
from headrace.serdes.wire_format import ID_SIZE, front_of, id_at_front

T = TypeVar("T")

_NULL = b"null"
_THREADS = 4
_KEPT_MAX = 1_000
_LATEST_S = 30.0
_STRATEGIES: dict[str, SubjectName] = {
    "TOPIC_NAME": topic_subject,
    "RECORD_NAME": record_subject,
    "TOPIC_RECORD_NAME": topic_record_subject,
}


class V2Schemas(msgspec.Struct, forbid_unknown_fields=True):
    """The schemas of a produce request of version 2."""

    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


class V3Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The format of a key or value of version 3, and its schema in one of several ways."""

    type: Format | None = None
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    schema: str | None = None


class Registered(msgspec.Struct, frozen=True):
    """A registered schema with its codec."""

    format: Format
    subject: str
    version: int | None
    schema_id: int
    codec: Codec

    def encode(self, raw: Raw) -> bytes | None:
        """Encode JSON to a payload with the schema id; null becomes None."""
        data = bytes(raw)
        if data == _NULL:
            return None
        try:
            return front_of(self.schema_id) + self.codec.encode(msgspec.json.decode(data))
        except PayloadError as error:
            raise json_conversion(str(error)) from None


class Schemas:
    """Finds schemas, and encodes and decodes payloads with them."""

    def __init__(self, settings: RestSettings) -> None:
        url = settings.schema_registry_url
        login = settings.schema_registry_basic_auth_user_info or ""
        authority = settings.schema_registry_ssl_truststore_location or ""
        self._client = RegistryClient(url, login, ca_file=authority) if url else None
        self._timeout_s = settings.timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, "headrace-rest-registry")
        self._codecs: dict[tuple[Format, int], Codec] = {}
        self._found: dict[tuple[Any, ...], tuple[float, Registered]] = {}

    async def of_v2(
        self, topic: str, format: Format, given: V2Schemas
    ) -> tuple[Registered | None, Registered | None]:
        """Find the schemas of keys and values that a request names."""
        key = await self._of_v2(topic, format, given.key_schema_id, given.key_schema, "key")
        value = await self._of_v2(topic, format, given.value_schema_id, given.value_schema, "value")
        return key, value

    async def of_v3(self, topic: str, given: V3Schema, *, is_key: bool) -> Registered:
        """Find the schema of a key or a value."""
        part = "key" if is_key else "value"
        strategy = _strategy(given.subject_name_strategy)
        if given.subject is not None and given.subject_name_strategy is not None:
            raise bad_request("subject and subject_name_strategy cannot be used together")
        key = (
            *(topic, part, given.type, given.subject, strategy.__name__),
            *(given.schema_id, given.schema_version, given.schema),
        )
        return await self._looked_up(key, lambda: self._find(topic, part, given, strategy))

    def decoder(self, format: Format, *, is_key: bool) -> Callable[[bytes | None], object]:
        """Return a decoder of payloads, which blocks on the registry and belongs in a thread."""
        client = self._required()
        part = "key" if is_key else "value"

        def show(payload: bytes | None) -> object:
            if payload is None:
                return None
            id_ = id_at_front(payload)
            if id_ is None:
                raise CorruptPayload(f"the {part} does not begin with the id of a schema")
            found = client.schema(id_)
            if found is None:
                raise CorruptPayload(f"the registry has no schema {id_}")
            return self._codec(format, found).decode(payload[ID_SIZE:])

        return show

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    async def _of_v2(
        self, topic: str, format: Format, id_: int | None, text: str | None, part: str
    ) -> Registered | None:
        if id_ is None and text is None:
            return None
        if id_ is not None:
            number = id_
            key: tuple[Any, ...] = ("v2", format, part, number)
            return await self._looked_up(key, lambda: self._by_id_alone(number, format))
        schema = text or ""
        return await self._looked_up(
            ("v2", format, topic, part, schema),
            lambda: self._by_text(topic, part, format, None, topic_subject, schema),
        )

    async def _looked_up(self, key: tuple[Any, ...], find: Callable[[], Registered]) -> Registered:
        """Return a cached result, or run the lookup in a thread within the time limit."""
        until, found = self._found.get(key, (0.0, None))
        if found is not None and time.monotonic() < until:
            return found
        self._required()
        try:
            async with asyncio.timeout(self._timeout_s):
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._threads, lambda: _translated(find))
        except TimeoutError as error:
            raise registry_failed("the registry did not answer in time") from error
        if len(self._found) >= _KEPT_MAX:
            self._found.clear()
        self._found[key] = (time.monotonic() + _LATEST_S, found)
        return found

    # The methods below run in threads.

    def _find(self, topic: str, part: str, given: V3Schema, strategy: SubjectName) -> Registered:
        if given.schema_id is not None:
            _check_alone(given.schema, given.schema_version, given.type)
            return self._by_id(topic, part, given.subject, strategy, given.schema_id)
        if given.schema_version is not None:
            _check_alone(given.schema, given.type)
            subject = _named(topic, part, given.subject, strategy)
            return self._by_version(subject, given.schema_version)
        if given.schema is not None:
            if given.type is None:
                raise bad_request("a schema needs a type: AVRO, JSONSCHEMA or PROTOBUF")
            return self._by_text(topic, part, given.type, given.subject, strategy, given.schema)
        return self._latest(_named(topic, part, given.subject, strategy), given.type)

    def _by_id_alone(self, id_: int, format: Format) -> Registered:
        """Find a schema of version 2, whose type must match the Content-Type."""
        found = self._schema(id_)
        if found.type != SCHEMA_TYPES[format]:
            raise invalid_schema(f"schema {id_} is of type {found.type}, not {format}")
        return Registered(format, "", None, id_, self._codec(format, found))

    def _by_id(
        self, topic: str, part: str, subject: str | None, strategy: SubjectName, id_: int
    ) -> Registered:
        found = self._schema(id_)
        format = _format(found.type)
        codec = self._codec(format, found)
        actual = subject or strategy(topic, part, codec.name)
        references = () if found.registration is None else found.registration.references
        new = NewSchema(found.text, found.type, references)
        version = self._required().lookup(actual, new)
        return Registered(format, actual, version.version, id_, codec)

    def _by_version(self, subject: str, version: int) -> Registered:
        found = self._required().version(subject, version)
        format = _format(found.type)
        return Registered(format, subject, version, found.id, self._codec(format, found))

    def _by_text(
        self,
        topic: str,
        part: str,
        format: Format,
        subject: str | None,
        strategy: SubjectName,
        text: str,
    ) -> Registered:
        """Find a schema by its text, and register it if it is new."""
        codec = codec_of(format, text)
        actual = subject or strategy(topic, part, codec.name)
        new = NewSchema(text, SCHEMA_TYPES[format])
        client = self._required()
        try:
            found = client.lookup(actual, new)
        except RegistryRefusal as refusal:
            if not refusal.is_not_found:
                raise
            registered = client.register(actual, new)
            version = registered.version or client.lookup(actual, new).version
            return Registered(format, actual, version, registered.id, codec)
        return Registered(format, actual, found.version, found.id, codec)

    def _latest(self, subject: str, type: Format | None) -> Registered:
        found = self._required().latest(subject)
        format = _format(found.type)
        if type is not None and type is not format:
            raise bad_request(f"the newest schema of {subject} is of type {format}, not {type}")
        version = None if found.registration is None else found.registration.version
        return Registered(format, subject, version, found.id, self._codec(format, found))

    def _schema(self, id_: int) -> RegisteredSchema:
        found = self._required().schema(id_)
        if found is None:
            raise serialization_failed(
                f"Error when fetching schema by id. schemaId = {id_}: not found"
            )
        return found

    def _codec(self, format: Format, found: RegisteredSchema) -> Codec:
        key = (format, found.id)
        codec = self._codecs.get(key)
        if codec is None:
            if found.type != SCHEMA_TYPES[format]:
                raise InvalidSchema(f"schema {found.id} is of type {found.type}, not {format}")
            codec = codec_of(format, found.text, found.dependencies)
            if len(self._codecs) >= _KEPT_MAX:
                self._codecs.clear()
            self._codecs[key] = codec
        return codec

    def _required(self) -> RegistryClient:
        if self._client is None:
            raise invalid_payload(
                "Schema Registry must be configured when using schemas: start with --registry URL."
            )
        return self._client


def _translated(find: Callable[[], T]) -> T:
    """Translate errors of the registry and of schemas."""
    try:
        return find()
    except RegistryUnavailable as error:
        raise registry_failed(f"the registry did not answer: {error}") from error
    except RegistryRefusal as error:
        raise serialization_failed(f"the registry reports {error.code}: {error}") from error
    except RegistryFailure as error:
        raise serialization_failed(str(error)) from error
    except InvalidSchema as error:
        raise invalid_schema(str(error)) from error
    except NoSubject as error:
        raise bad_request(str(error)) from error


def _strategy(name: str | None) -> SubjectName:
    if name is None:
        return topic_subject
    found = _STRATEGIES.get(name.upper())
    if found is None:
        names = ", ".join(_STRATEGIES)
        raise bad_request(f"subject_name_strategy is {name[:40]!r}; it must be one of {names}")
    return found


def _named(topic: str, part: str, subject: str | None, strategy: SubjectName) -> str:
    """Return a subject without its schema, which only the topic strategy supports."""
    if subject is not None:
        return subject
    if strategy is not topic_subject:
        raise bad_request("this subject_name_strategy cannot be used without schema_id or schema")
    return topic_subject(topic, part, None)


def _check_alone(*others: object) -> None:
    if any(one is not None for one in others):
        raise bad_request(
            "Unsupported argument: schema_id, schema_version and schema exclude each other, and"
            " only schema goes with a type"
        )


def _format(type: str) -> Format:
    try:
        return FORMATS[SchemaType(type)]
    except (ValueError, KeyError):
        raise bad_request(f"schemas of type {type} are not supported") from None
