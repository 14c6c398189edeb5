"""Single requests over a plain socket, encoded by kio: a codec that shares nothing with ours.

Fields that a version lacks are left out, so one call describes a request for all its versions.
"""

import dataclasses
import datetime
import io
import socket
import struct
from typing import Any, Self

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from tests.processes.nodes import HOST, eventually

Fields = dict[str, Any]
API_KEYS = {name: key for key, name in api_key_map.items()}
SECONDS_MAX = 30
SECOND = datetime.timedelta(seconds=1)


class Connection:
    """One socket to a broker, as a context manager."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=SECONDS_MAX)
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.socket.close()

    def call(self, name: str, version: int, **fields: Any) -> Any:
        """Send a request by its snake_case name and return the decoded response."""
        self.send(name, version, **fields)
        return self.receive(name, version)

    def send(self, name: str, version: int, **fields: Any) -> None:
        self.correlation_id += 1
        self.send_frame(encode_request(name, version, self.correlation_id, **fields))

    def receive(self, name: str, version: int) -> Any:
        return decode_response(name, version, self.receive_frame())

    def produce(self, topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> Any:
        """Append one record set and return the answer for its partition."""
        response = self.call("produce", 9, **produce_fields(topic, records, partition, acks))
        return response.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, **limits: Any) -> Any:
        """Fetch from one partition and return the answer for it."""
        response = self.call("fetch", 12, **fetch_fields([(topic, partition, offset)], **limits))
        return response.responses[0].partitions[0]

    def new_producer(self) -> Any:
        """A producer id and epoch for idempotent producing; a node just started may say: later."""
        fields = {"transactional_id": None, "transaction_timeout": SECOND}
        return eventually(
            lambda: self.call("init_producer_id", 4, **fields),
            expect=lambda answer: answer.error_code == ErrorCode.none,
        )

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)

    def receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            data += chunk
        return bytes(data)

    def is_closed_by_peer(self) -> bool:
        """Wait for the next byte or the end of the stream."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def produce_fields(topic: str, records: bytes, partition: int = 0, acks: int = -1) -> Fields:
    data = [{"index": partition, "records": records}]
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": SECOND * SECONDS_MAX,
        "topic_data": [{"name": topic, "partition_data": data}],
    }


def fetch_fields(
    places: list[tuple[str, int, int]],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 1_048_576,
) -> Fields:
    """A full fetch of (topic, partition, offset) places, outside any fetch session."""
    return {
        "max_wait": datetime.timedelta(milliseconds=max_wait_ms),
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "fetch_offset": offset,
                        "partition_max_bytes": partition_max_bytes,
                    }
                ],
            }
            for topic, partition, offset in places
        ],
        "forgotten_topics_data": [],
    }


def encode_request(name: str, version: int, correlation_id: int = 1, **fields: Any) -> bytes:
    """Header and body of a request, without the size in front."""
    request = build(load_request_schema(API_KEYS[name], version), fields)
    header_fields = {
        "request_api_key": API_KEYS[name],
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": "wire-test",
    }
    header = build(request.__header_schema__, header_fields)
    with io.BytesIO() as buffer:
        for entity in (header, request):
            entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def decode_response(name: str, version: int, frame: bytes) -> Any:
    response_class = load_response_schema(API_KEYS[name], version)
    _header, size = entity_reader(response_class.__header_schema__)(frame, 0)
    response, body_size = entity_reader(response_class)(frame, size)
    assert size + body_size == len(frame), "bytes are left after the response"
    return response


def build(cls: type, fields: dict[str, Any]) -> Any:
    """An entity from plain values: dictionaries become nested entities, lists become tuples."""
    known = {field.name: field for field in dataclasses.fields(cls)}
    hints = cls.__annotations__
    arguments = {name: nested(cls, hints[name], fields[name]) for name in known if name in fields}
    return cls(**arguments)


def nested(cls: type, hint: Any, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(nested(cls, hint, item) for item in value)
    if isinstance(value, dict):
        return build(entity_named_in(hint), value)
    return value


def entity_named_in(hint: Any) -> type:
    """The nested entity in `Entity`, `tuple[Entity, ...]` or either with `| None`."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    for argument in getattr(hint, "__args__", ()):
        if argument not in (Ellipsis, type(None)):
            return entity_named_in(argument)
    raise TypeError(f"no entity in {hint}")
