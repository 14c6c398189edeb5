"""Decoders with a schema registry.

The rows have the given schema, or the newest one of the topic's subject when the query is planned.
Payloads of later schemas are read as that one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.serdes.protobuf.indexes import read_indexes
from headrace.spark.decoding.avro.decoder import AvroDecoder
from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.errors import InvalidFormatOption, InvalidSchema
from headrace.spark.decoding.json.decoder import JsonDecoder
from headrace.spark.decoding.json.schemas import columns_of_json_schema
from headrace.spark.decoding.options import PayloadOptions, recursive_depth
from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
from headrace.spark.decoding.protobuf.schemas import compile_proto, parse_proto
from headrace.spark.decoding.registry.client import RegisteredSchema, Registry
from headrace.spark.decoding.registry.decoder import Format, RegistryDecoder, refuse_type
from headrace.spark.option_names import REGISTRY_LOGIN, REGISTRY_SUBJECT, REGISTRY_URL

NO_INDEXES = "not in the registry's wire format: the path of its message is missing"


def registry_decoder_of(
    options: PayloadOptions, format_: str, by_schema: Callable[[PayloadOptions], Decoder]
) -> Decoder:
    """Return the decoder of payloads in the wire format of a registry.

    `by_schema` makes the decoder of a given schema.
    """
    if format_ not in _FORMATS:
        raise InvalidFormatOption(f"the payload format {format_} does not support a registry")
    kind, of_registered = _FORMATS[format_]
    registry = Registry(options.text(REGISTRY_URL).strip(), options.text(REGISTRY_LOGIN))
    if options.text("schema"):
        reader = by_schema(options)
    else:
        reader = of_registered(_newest(options, registry, kind.type), options)
        reader.schema  # noqa: B018  # Reject a schema without columns now.
    return RegistryDecoder(registry, kind, reader)


def _newest(options: PayloadOptions, registry: Registry, type_: str) -> RegisteredSchema:
    subject = _subject_of(options)
    found = registry.latest(subject)
    try:
        refuse_type(found, type_)
    except InvalidSchema as error:
        raise InvalidSchema(f"the newest schema of {subject} cannot be used: {error}") from error
    return found


def _subject_of(options: PayloadOptions) -> str:
    """Return the given subject, or the default one of a single topic."""
    topic = options.text("subscribe").strip()
    subject = options.text(REGISTRY_SUBJECT).strip() or (f"{topic}-value" if topic else "")
    if not subject or ("," in topic and not options.text(REGISTRY_SUBJECT).strip()):
        raise InvalidFormatOption(
            "several topics have several subjects: give the subject of the rows' schema by the"
            f" option {REGISTRY_SUBJECT}, or the schema by the option schema"
        )
    return subject


def _avro_reader(found: RegisteredSchema, options: PayloadOptions) -> Decoder:
    references = tuple(text for _, text in found.references)
    depth = recursive_depth(options)
    return AvroDecoder(found.text, found.text, references, references, depth)


def _avro_decoder(reader: AvroDecoder, written: RegisteredSchema) -> Decoder:
    """Resolve the writer's schema to the reader's."""
    decoder = AvroDecoder(
        written.text,
        reader.reader_text,
        tuple(text for _, text in written.references),
        reader.reader_references,
        reader.recursive_depth_max,
    )
    decoder.projection  # noqa: B018  # Check both schemas now.
    return decoder


def _json_reader(found: RegisteredSchema, options: PayloadOptions) -> Decoder:
    return JsonDecoder(columns_of_json_schema(found.text))


def _json_decoder(reader: Decoder, written: RegisteredSchema) -> Decoder:
    """Return the reader: the columns alone decide, whatever the id."""
    return reader


def _protobuf_reader(found: RegisteredSchema, options: PayloadOptions) -> Decoder:
    descriptors = compile_proto(found.text, dict(found.references))
    return ProtobufDecoder(descriptors, options.text("message"))


def _protobuf_decoder(reader: ProtobufDecoder, written: RegisteredSchema) -> Decoder:
    """Read messages of other schemas by the reader's: fields have numbers."""
    messages = parse_proto(written.text, dict(written.references)).messages
    return IndexedProtobufDecoder(reader, {way: name for name, way in messages.items()})


@dataclass(frozen=True)
class IndexedProtobufDecoder:
    """Decodes messages behind their paths: those with the reader's name, and no others."""

    reader: ProtobufDecoder
    written: dict[tuple[int, ...], str]
    """The messages of the writer's schema by their paths."""

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
        """Return the message, or an error."""
        found = read_indexes(body)
        if found is None:
            return None, NO_INDEXES
        indexes, at = found
        name = self.written.get(indexes)
        wanted = self.reader.descriptor.full_name
        if name != wanted:
            return None, f"its message is {name or 'missing in its schema'}, not {wanted}"
        return body[at:], None


_FORMATS: dict[str, tuple[Format, Callable[[RegisteredSchema, PayloadOptions], Decoder]]] = {
    "avro": (Format("AVRO", _avro_decoder), _avro_reader),
    "json": (Format("JSON", _json_decoder), _json_reader),
    "protobuf": (Format("PROTOBUF", _protobuf_decoder), _protobuf_reader),
}
