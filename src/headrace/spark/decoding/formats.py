"""The choice of a decoder by the options of a source."""

from collections.abc import Callable, Mapping

from headrace.spark.decoding.ddl import schema_of
from headrace.spark.decoding.decoder import Decoder
from headrace.spark.decoding.errors import InvalidFormatOption
from headrace.spark.decoding.options import PayloadOptions, recursive_depth
from headrace.spark.option_names import REGISTRY_URL

BYTES = "bytes"

_EXAMPLE = "`id BIGINT, name STRING`"
_PROTO_BEGINNINGS = ("syntax", "edition", "message ", "package ", "import ", "//", "/*")


def decoder_of(
    options: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> Decoder | None:
    """Return the decoder for these options, or None if payloads stay bytes.

    `properties` are the client's, which may have a registry's address and login.
    """
    lowered = {name.lower(): value for name, value in (properties or {}).items()}
    lowered.update({name.lower(): value for name, value in options.items()})
    wanted = PayloadOptions(lowered)
    format_ = wanted.text("format", BYTES).strip().lower()
    if format_ == BYTES:
        return None
    if format_ not in _BY_SCHEMA:
        raise InvalidFormatOption(
            f"unknown payload format {format_!r}; use one of {', '.join((BYTES, *_BY_SCHEMA))}"
        )
    if not wanted.text(REGISTRY_URL):
        return _BY_SCHEMA[format_](wanted)
    from headrace.spark.decoding.registry.readers import registry_decoder_of

    return registry_decoder_of(wanted, format_, _BY_SCHEMA[format_])


def _json_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.json.decoder import JsonDecoder

    return JsonDecoder(schema_of(options.required("schema", _EXAMPLE)))


def _csv_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.csv.decoder import CsvDecoder

    delimiter = options.text("delimiter") or options.text("sep", ",")
    delimiter = {"\\t": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidFormatOption(f"the option delimiter is one ASCII sign, not {delimiter!r}")
    escape = options.text("escape").replace('"', "")  # Doubled quotes are always supported.
    if len(escape) > 1 or not escape.isascii() or escape in (delimiter, "\r", "\n", "\0"):
        raise InvalidFormatOption(
            f"the option escape is one ASCII sign other than the delimiter, not {escape!r}"
        )
    return CsvDecoder(
        schema_of(options.required("schema", _EXAMPLE)),
        delimiter=delimiter,
        null_value=options.text("nullValue"),
        header=options.flag("header"),
        escape=escape,
    )


def _avro_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.avro.decoder import AvroDecoder

    text = options.schema_text("schema", ("{", "["), "Avro's JSON or the path of an .avsc file")
    decoder = AvroDecoder(text, text, recursive_depth_max=recursive_depth(options))
    decoder.schema  # noqa: B018  # Reject an invalid schema now, not in a worker.
    return decoder


def _protobuf_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
    from headrace.spark.decoding.protobuf.schemas import compile_proto

    text = options.schema_text("schema", _PROTO_BEGINNINGS, "the path of a .proto file or its text")
    decoder = ProtobufDecoder(compile_proto(text), options.text("message"))
    decoder.schema  # noqa: B018
    return decoder


_BY_SCHEMA: Mapping[str, Callable[[PayloadOptions], Decoder]] = {
    "json": _json_decoder,
    "csv": _csv_decoder,
    "avro": _avro_decoder,
    "protobuf": _protobuf_decoder,
}
