"""Decoders that ask a registry: where it is, and which schema the rows have.

The rows have the schema that is given, or the newest one of the topic's subject when the query is
planned; later schemas of the subject are read as that one.
"""

from headrace.spark.decoding.avro.decoder import AvroDecoder
from headrace.spark.decoding.decoder import Decoder
from headrace.spark.decoding.errors import InvalidFormatOption, InvalidSchema
from headrace.spark.decoding.json.decoder import JsonDecoder
from headrace.spark.decoding.json.schemas import columns_of_json_schema
from headrace.spark.decoding.options import (
    REGISTRY_LOGIN,
    REGISTRY_URL,
    PayloadOptions,
    avro_decoder,
    json_decoder,
    protobuf_decoder,
    recursive_depth,
)
from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
from headrace.spark.decoding.protobuf.schemas import compile_proto
from headrace.spark.decoding.registry.client import RegisteredSchema, Registry
from headrace.spark.decoding.registry.decoder import (
    AvroFormats,
    Formats,
    JsonFormats,
    RegistryDecoder,
    refuse_type,
)
from headrace.spark.decoding.registry.protobuf import ProtobufFormats

REGISTRY_SUBJECT = "schema.registry.subject"


def registry_decoder_of(options: PayloadOptions, format_: str) -> Decoder:
    """The decoder of payloads in the wire format of the registry that the options name."""
    registry = Registry(options.text(REGISTRY_URL).strip(), options.text(REGISTRY_LOGIN))
    match format_:
        case "avro":
            formats: Formats = AvroFormats(avro_reader(options, registry))
        case "json":
            formats = JsonFormats(json_reader(options, registry))
        case "protobuf":
            formats = ProtobufFormats(protobuf_reader(options, registry))
        case _:
            raise InvalidFormatOption(f"payloads of the format {format_} have no registry")
    return RegistryDecoder(registry, formats)


def avro_reader(options: PayloadOptions, registry: Registry) -> AvroDecoder:
    if options.text("schema"):
        return avro_decoder(options)
    found = newest(options, registry, "AVRO")
    references = tuple(text for _, text in found.references)
    depth = recursive_depth(options)
    decoder = AvroDecoder(found.text, found.text, references, references, depth)
    decoder.schema  # noqa: B018  # A schema that rows cannot have is refused now.
    return decoder


def json_reader(options: PayloadOptions, registry: Registry) -> Decoder:
    if options.text("schema"):
        return json_decoder(options)
    return JsonDecoder(columns_of_json_schema(newest(options, registry, "JSON").text))


def protobuf_reader(options: PayloadOptions, registry: Registry) -> ProtobufDecoder:
    if options.text("schema"):
        return protobuf_decoder(options)
    found = newest(options, registry, "PROTOBUF")
    descriptors = compile_proto(found.text, dict(found.references))
    decoder = ProtobufDecoder(descriptors, options.text("message"))
    decoder.schema  # noqa: B018
    return decoder


def newest(options: PayloadOptions, registry: Registry, type_: str) -> RegisteredSchema:
    subject = subject_of(options)
    found = registry.latest(subject)
    try:
        refuse_type(found, type_)
    except InvalidSchema as error:
        raise InvalidSchema(f"the newest schema of {subject} cannot be used: {error}") from error
    return found


def subject_of(options: PayloadOptions) -> str:
    """The subject that is named, or the usual one of the one topic that is read."""
    topic = options.text("subscribe").strip()
    subject = options.text(REGISTRY_SUBJECT).strip() or (f"{topic}-value" if topic else "")
    if not subject or ("," in topic and not options.text(REGISTRY_SUBJECT).strip()):
        raise InvalidFormatOption(
            "several topics have several subjects: name the one whose schema the rows have by "
            f"the option {REGISTRY_SUBJECT}, or give the schema by the option schema"
        )
    return subject
