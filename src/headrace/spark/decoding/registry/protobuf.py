"""Protobuf in a registry's wire format: behind the id comes which message of the file it is."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.serdes.protobuf.indexes import read_indexes
from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
from headrace.spark.decoding.protobuf.schemas import parse_proto
from headrace.spark.decoding.registry.client import RegisteredSchema
from headrace.spark.decoding.registry.decoder import refuse_type

NO_INDEXES = "not in the registry's wire format: it does not say which message of the schema it is"


@dataclass(frozen=True)
class ProtobufFormats:
    """Protobuf: fields are known by number, so the reader's schema reads what others wrote."""

    reader: ProtobufDecoder

    def decoder_for(self, written: RegisteredSchema) -> Decoder:
        refuse_type(written, "PROTOBUF")
        messages = parse_proto(written.text, dict(written.references)).messages
        return IndexedProtobufDecoder(self.reader, {way: name for name, way in messages.items()})


@dataclass(frozen=True)
class IndexedProtobufDecoder:
    """Reads messages that are of the reader's name, and refuses the others of the same file."""

    reader: ProtobufDecoder
    written: dict[tuple[int, ...], str]
    """The messages of the schema that payloads were written with, by the ways to them."""

    @property
    def schema(self) -> Any:
        return self.reader.schema

    def decode(self, payloads: Any) -> Decoded:
        bodies: list[bytes | None] = payloads.to_pylist()
        errors: list[str | None] = [None] * len(bodies)
        for row, body in enumerate(bodies):
            if body is not None:
                bodies[row], errors[row] = self._message(body)
        decoded = self.reader.decode(pa.array(bodies, pa.binary()))
        texts = [
            mine or other for mine, other in zip(errors, decoded.errors.to_pylist(), strict=True)
        ]
        return Decoded(decoded.columns, pa.array(texts, pa.string()))

    def _message(self, body: bytes) -> tuple[bytes | None, str | None]:
        """The message proper, or why there is none for the reader."""
        found = read_indexes(body)
        if found is None:
            return None, NO_INDEXES
        indexes, at = found
        name = self.written.get(indexes)
        wanted = self.reader.descriptor.full_name
        if name != wanted:
            return None, f"it is a message {name or 'that its schema lacks'}, not {wanted}"
        return body[at:], None
