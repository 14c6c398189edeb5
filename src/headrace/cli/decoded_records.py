"""Decodes the keys and values of `headrace consume --registry` by the schemas that they name.

Avro becomes Avro's JSON encoding, Protobuf its JSON mapping, JSON stays as written. A payload that
names no schema is printed as it is, and so is one that cannot be decoded, with one warning per
schema: a bad record must not end the reading.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headrace.cli.output import warn
from headrace.cli.record_text import JsonText
from headrace.client.records import ReadRecord
from headrace.errors import HeadraceError
from headrace.rest.schema_codecs import FORMATS, Codec, codec_of
from headrace.schema_clients.registry_client import RegistryClient
from headrace.serdes.schemas import InvalidSchema, SchemaType
from headrace.serdes.wire_format import (
    GUID_SIZE,
    ID_SIZE,
    SchemaId,
    id_at_front,
    id_in_header,
    schema_header,
)


class DecodedRecord:
    """A record whose key and value are decoded."""

    def __init__(self, record: ReadRecord, key: Any, value: Any) -> None:
        self._key, self._value = key, value
        self.topic, self.partition, self.offset = record.topic, record.partition, record.offset
        self.timestamp, self.headers = record.timestamp, record.headers

    def key(self) -> Any:
        return self._key

    def value(self) -> Any:
        return self._value


class RecordDecoder:
    """Decodes records with schemas of a registry, each looked up once."""

    def __init__(self, registry: RegistryClient, report: Callable[[str], None] = warn) -> None:
        self._registry = registry
        self._report = report
        self._codecs: dict[SchemaId, Codec | None] = {}
        self._reported: set[SchemaId] = set()

    def decoded(self, records: Sequence[ReadRecord]) -> list[ReadRecord]:
        return [
            DecodedRecord(
                record,
                self._content("key", record.key(), record.headers()),
                self._content("value", record.value(), record.headers()),
            )
            for record in records
        ]

    def _content(self, part: str, payload: bytes | None, headers: Any) -> bytes | None:
        if payload is None:
            return None
        header = schema_header(headers, part)
        id_ = None if header is None else id_in_header(header)
        if id_ is None:
            id_, body = id_at_front(payload), payload[ID_SIZE:]
        else:
            # In a header, Protobuf's path to the message follows the id.
            assert header is not None
            body = header[GUID_SIZE if isinstance(id_, str) else ID_SIZE :] + payload
        codec = None if id_ is None else self._codec(id_)
        if id_ is None or codec is None:
            return payload
        try:
            return JsonText(msgspec.json.encode(codec.decode(body)))
        except HeadraceError as error:
            self._report_once(id_, f"records of schema {id_} are shown as bytes: {error}")
            return payload

    def _codec(self, id_: SchemaId) -> Codec | None:
        if id_ not in self._codecs:
            self._codecs[id_] = self._made(id_)
        return self._codecs[id_]

    def _made(self, id_: SchemaId) -> Codec | None:
        registered = self._registry.schema(id_)
        if registered is None:
            self._report_once(id_, f"the registry has no schema {id_}; its records are shown as is")
            return None
        try:
            format = FORMATS[SchemaType(registered.type)]
            return codec_of(format, registered.text, registered.dependencies)
        except (InvalidSchema, ValueError) as error:
            self._report_once(id_, f"schema {id_} is invalid, its records are shown as is: {error}")
            return None

    def _report_once(self, id_: SchemaId, text: str) -> None:
        if id_ not in self._reported:
            self._reported.add(id_)
            self._report(text)
