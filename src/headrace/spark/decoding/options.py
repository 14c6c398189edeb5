"""Which decoder a source's options ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark.decoding.ddl import schema_of
from headrace.spark.decoding.decoder import Decoder
from headrace.spark.decoding.errors import InvalidFormatOption

if TYPE_CHECKING:
    from headrace.spark.decoding.avro.decoder import AvroDecoder
    from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder

BYTES = "bytes"
FORMATS = (BYTES, "json", "csv", "avro", "protobuf")

RECURSION = "recursiveFieldMaxDepth"
RECURSION_MAX = 15

REGISTRY_URL = "schema.registry.url"
REGISTRY_LOGIN = "schema.registry.basic.auth.user.info"

SCHEMA_FILE_BYTES_MAX = 1 << 20
EXAMPLE = "`id BIGINT, name STRING`"
PROTO_BEGINNINGS = ("syntax", "edition", "message ", "package ", "import ", "//", "/*")


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """A source's options, by names in any case as Spark has them."""

    values: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name.lower(), default)

    def flag(self, name: str) -> bool:
        value = self.text(name, "false").strip().lower()
        if value not in ("true", "false"):
            raise InvalidFormatOption(f"the option {name} is true or false, not {value!r}")
        return value == "true"

    def required(self, name: str, example: str) -> str:
        value = self.text(name)
        if not value.strip():
            format_ = self.text("format")
            raise InvalidFormatOption(
                f"the payload format {format_} needs the option {name}, such as {example}"
            )
        return value

    def schema_text(self, name: str, begins_with: tuple[str, ...], example: str) -> str:
        """A schema's text, or that of the file that the option names.

        Files are read here, where the query is planned: workers may not have them.
        """
        value = self.required(name, example)
        if value.lstrip().startswith(begins_with) or "\n" in value:
            return value
        path = Path(value.removeprefix("file://"))
        try:
            if path.stat().st_size > SCHEMA_FILE_BYTES_MAX:
                raise InvalidFormatOption(f"the schema file {path} is larger than 1 MB")
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFormatOption(
                f"the option {name} is neither a schema nor a file that can be read: {error}"
            ) from error


def decoder_of(
    options: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> Decoder | None:
    """The decoder that these options ask for, or None if payloads stay bytes.

    `properties` are the client's; a registry's address and login may be among them.
    """
    lowered = {name.lower(): value for name, value in (properties or {}).items()}
    lowered.update({name.lower(): value for name, value in options.items()})
    wanted = PayloadOptions(lowered)
    format_ = wanted.text("format", BYTES).strip().lower()
    if format_ not in FORMATS:
        raise InvalidFormatOption(
            f"the payload format {format_!r} is not known; there are {', '.join(FORMATS)}"
        )
    if format_ == BYTES:
        return None
    if wanted.text(REGISTRY_URL):
        from headrace.spark.decoding.registry.options import registry_decoder_of

        return registry_decoder_of(wanted, format_)
    return {
        "json": json_decoder,
        "csv": csv_decoder,
        "avro": avro_decoder,
        "protobuf": protobuf_decoder,
    }[format_](wanted)


def json_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.json.decoder import JsonDecoder

    return JsonDecoder(schema_of(options.required("schema", EXAMPLE)))


def csv_decoder(options: PayloadOptions) -> Decoder:
    from headrace.spark.decoding.csv.decoder import CsvDecoder

    delimiter = options.text("delimiter") or options.text("sep", ",")
    delimiter = {"\\t": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise InvalidFormatOption(f"the option delimiter is one ASCII sign, not {delimiter!r}")
    escape = options.text("escape").replace('"', "")  # Doubled quotes are always understood.
    if len(escape) > 1 or not escape.isascii() or escape in (delimiter, "\r", "\n", "\0"):
        raise InvalidFormatOption(
            f"the option escape is one ASCII sign other than the delimiter, not {escape!r}"
        )
    return CsvDecoder(
        schema_of(options.required("schema", EXAMPLE)),
        delimiter=delimiter,
        null_value=options.text("nullValue"),
        header=options.flag("header"),
        escape=escape,
    )


def avro_decoder(options: PayloadOptions) -> "AvroDecoder":
    from headrace.spark.decoding.avro.decoder import AvroDecoder

    text = options.schema_text("schema", ("{", "["), "Avro's JSON or the path of an .avsc file")
    decoder = AvroDecoder(text, text, recursive_depth_max=recursive_depth(options))
    decoder.schema  # noqa: B018  # A bad schema is refused now, not in a worker.
    return decoder


def recursive_depth(options: PayloadOptions) -> int:
    """How often a record may appear within itself, by the option that Spark's Avro reader has."""
    text = options.text(RECURSION, "0").strip()
    # Spark takes any number below 1 for "not at all", and -1 is what it has when nothing is said.
    if not text.removeprefix("-").isdecimal() or int(text) > RECURSION_MAX:
        raise InvalidFormatOption(
            f"the option {RECURSION} is a number up to {RECURSION_MAX}, not {text!r}"
        )
    return max(int(text), 0)


def protobuf_decoder(options: PayloadOptions) -> "ProtobufDecoder":
    from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
    from headrace.spark.decoding.protobuf.schemas import compile_proto

    text = options.schema_text("schema", PROTO_BEGINNINGS, "the path of a .proto file or its text")
    decoder = ProtobufDecoder(compile_proto(text), options.text("message"))
    decoder.schema  # noqa: B018
    return decoder
