"""Payloads in a registry's wire format, with a registry that is a small HTTP server."""

import base64
import io
import json
import pickle
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.schema_clients.registry_client.connections import ATTEMPTS
from headrace.spark.decoding.errors import InvalidFormatOption, RegistryUnavailable
from headrace.spark.decoding.formats import decoder_of
from headrace.spark.decoding.registry.client import Registry

V1 = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "int"}]}
V2 = {
    "type": "record",
    "name": "E",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
PROTO = 'syntax = "proto3"; message A { int32 x = 1; } message B { string y = 1; }'
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
        "any": {"type": ["string", "integer"]},
    },
    "definitions": {"tag": {"type": "string"}},
}


class FakeRegistry:
    """Answers by path, counts what it was asked, and may want a login or be out of order."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.login = ""
        self.failures = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, id_: int, schema: Any, type_: str = "AVRO", **more: Any) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.answers[f"/schemas/ids/{id_}"] = {"schema": text, "schemaType": type_, **more}

    def newest(self, subject: str, id_: int) -> None:
        found = self.answers[f"/schemas/ids/{id_}"]
        self.answers[f"/subjects/{subject}/versions/latest"] = {**found, "id": id_}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path)
        wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        if self.failures:
            self.failures -= 1
            handler.send_response(503)
        elif self.login and handler.headers.get("Authorization") != wanted:
            handler.send_response(401)
        elif handler.path in self.answers:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(json.dumps(self.answers[handler.path]).encode())
            return
        else:
            handler.send_response(404)
        handler.end_headers()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()


def framed(id_: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, id_) + body


def avro(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def rows_of(
    options: dict[str, str], payloads: list[bytes | None]
) -> list[tuple[dict[str, Any], str | None]]:
    decoder = decoder_of(options)
    assert decoder is not None
    decoded = pickle.loads(pickle.dumps(decoder)).decode(pa.array(payloads, pa.binary()))
    assert decoded.columns.schema == decoder.schema
    return list(zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True))


def test_records_of_several_writers_become_rows_of_the_newest_schema(
    registry: FakeRegistry,
) -> None:
    registry.add(1, V1)
    registry.add(300, V2)
    registry.newest("events-value", 300)
    rows = rows_of(
        {"format": "avro", "subscribe": "events", "schema.registry.url": registry.url},
        [
            framed(300, avro(V2, {"id": 5, "note": "n"})),
            framed(1, avro(V1, {"id": 6})),
            None,
            framed(300, b"\xff"),
            b"{}",
            framed(9, b""),
            framed(1, avro(V1, {"id": 7})),
        ],
    )
    nothing = {"id": None, "note": None}
    assert rows[0] == ({"id": 5, "note": "n"}, None)
    assert rows[1] == ({"id": 6, "note": None}, None)
    assert rows[2] == (nothing, None)
    assert rows[3] == (nothing, "not a record of this Avro schema: ends within id")
    assert rows[4][0] == nothing
    assert str(rows[4][1]).startswith("not in the registry's wire format")
    assert rows[5] == (nothing, "the schema registry has no schema 9")
    assert rows[6] == ({"id": 7, "note": None}, None)


def test_a_given_schema_is_the_readers(registry: FakeRegistry) -> None:
    registry.add(1, V1)
    options = {"format": "avro", "schema": json.dumps(V2), "schema.registry.url": registry.url}
    assert rows_of(options, [framed(1, avro(V1, {"id": 6}))]) == [({"id": 6, "note": None}, None)]


def test_a_schema_is_requested_once(registry: FakeRegistry) -> None:
    registry.add(1, V1)
    options = {"format": "avro", "schema": json.dumps(V1), "schema.registry.url": registry.url}
    decoder = decoder_of(options)
    assert decoder is not None
    for _ in range(3):
        decoder.decode(pa.array([framed(1, b"\x02")] * 10))
    assert registry.asked == ["/schemas/ids/1"]


def test_a_schema_with_references_is_read_with_them(registry: FakeRegistry) -> None:
    outer = {"type": "record", "name": "O", "fields": [{"name": "e", "type": "E"}]}
    registry.add(1, V1)
    registry.answers["/subjects/e/versions/2?deleted=true"] = {"schema": json.dumps(V1)}
    registry.add(7, outer, references=[{"name": "E", "subject": "e", "version": 2}])
    registry.newest("t-value", 7)
    options = {"format": "avro", "subscribe": "t", "schema.registry.url": registry.url}
    assert rows_of(options, [framed(7, b"\x08")]) == [({"e": {"id": 4}}, None)]


def test_protobuf_names_the_message_by_indexes(registry: FakeRegistry) -> None:
    registry.add(3, PROTO, "PROTOBUF")
    registry.newest("t-value", 3)
    options = {
        "format": "protobuf", "subscribe": "t", "message": "B", "schema.registry.url": registry.url,
    }  # fmt: skip
    rows = rows_of(
        options,
        [
            framed(3, b"\x02\x02" + b"\x0a\x02hi"),
            framed(3, b"\x00" + b"\x08\x01"),
            framed(3, b""),
            framed(3, b"\x02\x08"),
        ],
    )
    assert rows[0] == ({"y": "hi"}, None)
    assert rows[1] == ({"y": None}, "its message is A, not B")
    assert str(rows[2][1]).startswith("not in the registry's wire format")
    assert rows[3][1] == "its message is missing in its schema, not B"


def test_json_takes_its_columns_from_the_json_schema(registry: FakeRegistry) -> None:
    registry.add(200, JSON_SCHEMA, "JSON")
    registry.newest("t-value", 200)
    options = {"format": "json", "subscribe": "t", "schema.registry.url": registry.url}
    rows = rows_of(options, [framed(200, b'{"id": 1, "tags": ["a"], "any": 5}'), b'{"id": 1}'])
    assert rows[0] == ({"id": 1, "at": None, "tags": ["a"], "any": "5"}, None)
    assert str(rows[1][1]).startswith("not in the registry's wire format")


def test_a_schema_of_another_type_makes_its_rows_bad(registry: FakeRegistry) -> None:
    registry.add(3, PROTO, "PROTOBUF")
    options = {"format": "avro", "schema": json.dumps(V1), "schema.registry.url": registry.url}
    rows = rows_of(options, [framed(3, b"\x02")])
    assert rows[0][1] == "schema 3 cannot be read: its type is PROTOBUF, not AVRO"


def test_garbage_does_not_request_every_id_it_resembles(registry: FakeRegistry) -> None:
    options = {"format": "avro", "schema": json.dumps(V1), "schema.registry.url": registry.url}
    rows = rows_of(options, [framed(id_, b"") for id_ in range(500)])
    assert all(error is not None for _, error in rows)
    assert len(registry.asked) < 150


def test_a_registry_that_comes_back_is_queried_again(registry: FakeRegistry) -> None:
    registry.add(1, V1)
    registry.failures = ATTEMPTS - 1
    found = Registry(registry.url, sleep=lambda _: None).schema(1)
    assert found is not None
    assert json.loads(found.text) == V1


def test_a_registry_that_does_not_answer_fails_the_batch(registry: FakeRegistry) -> None:
    registry.failures = 100
    with pytest.raises(RegistryUnavailable, match="does not answer /schemas/ids/1: HTTP 503"):
        Registry(registry.url, sleep=lambda _: None).schema(1)
    assert len(registry.asked) == ATTEMPTS


def test_a_registry_that_is_not_there_fails_the_batch(registry: FakeRegistry) -> None:
    registry.close()
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        Registry(registry.url, sleep=lambda _: None).schema(1)


def test_the_login_is_sent_and_never_shown(registry: FakeRegistry) -> None:
    registry.add(1, V1)
    registry.login = "ada:s3cret"
    host = registry.url.removeprefix("http://")
    by_option = Registry(registry.url, "ada:s3cret")
    by_address = Registry(f"http://ada:s3cret@{host}")
    assert by_option.schema(1) == by_address.schema(1)
    assert "s3cret" not in repr(by_option) + repr(by_address)
    with pytest.raises(RegistryUnavailable, match="HTTP 401") as caught:
        Registry(f"http://ada:wr0ng@{host}").schema(1)
    assert "wr0ng" not in str(caught.value)


def test_the_subject_must_be_there(registry: FakeRegistry) -> None:
    options = {"format": "avro", "subscribe": "t", "schema.registry.url": registry.url}
    with pytest.raises(InvalidFormatOption, match="has no subject t-value"):
        decoder_of(options)


def test_several_topics_need_a_subject_by_name(registry: FakeRegistry) -> None:
    options = {"format": "avro", "subscribe": "a,b", "schema.registry.url": registry.url}
    with pytest.raises(InvalidFormatOption, match=r"schema\.registry\.subject"):
        decoder_of(options)
