"""Values as Avro's binary encoding and back, with the schema of who wrote and of who reads.

Values are what fastavro has for them: dicts, lists, texts, numbers; with `logical`, logical types
are dates, times, decimals and UUIDs. A pair `(name, value)` picks a branch of a union.
"""

from decimal import DecimalException
from io import BytesIO
from struct import error as StructError  # noqa: N812  # An exception by a name in lower case.
from typing import Any, Final

import fastavro
from fastavro.read import SchemaResolutionError

from headrace.serdes.avro.checking import Check, Unfit, check_of
from headrace.serdes.avro.errors import CorruptPayload, UnfitValue
from headrace.serdes.avro.forms import Form, reader_form, with_fresh_defaults, writer_form
from headrace.serdes.avro.model import Record
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.avro.walking import Danger

FAILURES: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError,
    TypeError, ValueError, DecimalException, StructError, SchemaResolutionError,
)  # fmt: skip
"""What fastavro lets through from where it hits values or bytes that it did not expect."""


def encode(schema: AvroSchema, value: Any, *, logical: bool = True) -> bytes:
    """The bytes of a value; missing fields get their defaults. `UnfitValue` names a wrong field."""
    output = BytesIO()
    encoder_of(schema, logical=logical).write(output, value)
    return output.getvalue()


def decode(
    writer: AvroSchema,
    reader: AvroSchema | None,
    payload: bytes | bytearray | memoryview,
    *,
    logical: bool = True,
) -> Any:
    """The value of a whole payload, as the reader's schema has it where there is one."""
    decoder = decoder_of(writer, reader, logical=logical)
    data = payload if isinstance(payload, bytes) else bytes(payload)
    source = BytesIO(data)
    decoder.danger.check(data)
    value = decoder.read(source)
    if source.tell() != len(data):
        raise CorruptPayload(f"{len(data) - source.tell()} bytes are left over after the value")
    return value


class Encoder:
    """Writes values of one schema."""

    def __init__(self, schema: AvroSchema, *, logical: bool) -> None:
        self._is_wrapped = not isinstance(schema.root, Record)
        self._check: Check = check_of(schema.root, logical=logical)
        self._form = writer_form(schema.root, logical=logical, wrapped=self._is_wrapped)

    def write(self, output: BytesIO, value: Any) -> None:
        try:
            self._check(value)
        except Unfit as error:
            raise error.as_error() from None
        except RecursionError:
            raise UnfitValue("the value nests too deep") from None
        self.write_unchecked(output, value)

    def write_unchecked(self, output: BytesIO, value: Any) -> None:
        """For values that are known to fit, such as those that were just read."""
        begin = output.tell()
        try:
            written = {"value": value} if self._is_wrapped else value
            fastavro.schemaless_writer(output, self._form, written)
        except FAILURES as error:
            output.seek(begin)
            output.truncate()
            raise UnfitValue(f"the value does not fit its schema: {_reason(error)}") from error


def encoder_of(schema: AvroSchema, *, logical: bool = True) -> Encoder:
    return schema.compiled(
        ("encoder", logical), lambda compiled: Encoder(compiled, logical=logical)
    )


class Decoder:
    """Reads values of a writer's schema one after the other, as the reader's where there is one."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema | None, *, logical: bool) -> None:
        records = isinstance(writer.root, Record) and (
            reader is None or isinstance(reader.root, Record)
        )
        self._is_wrapped = not records
        self._writer = _writer_form_of(writer, logical, self._is_wrapped)
        self._reader: Form | None = None
        self._has_fresh = False
        if reader is not None and reader is not writer:
            self._reader, self._has_fresh = _reader_form_of(reader, logical, self._is_wrapped)
        self.danger = writer.compiled("danger", lambda schema: Danger(schema.root))

    def read(self, source: BytesIO) -> Any:
        """The value that begins where the source stands. Look for danger before."""
        try:
            value: Any = fastavro.schemaless_reader(source, self._writer, self._reader)
        except FAILURES as error:
            raise CorruptPayload(
                f"the payload does not fit its schema: {_reason(error)}"
            ) from error
        if self._has_fresh:
            value = with_fresh_defaults(value)
        return value["value"] if self._is_wrapped else value


def decoder_of(writer: AvroSchema, reader: AvroSchema | None, *, logical: bool = True) -> Decoder:
    if reader is None:
        return writer.compiled(
            ("decoder", logical), lambda schema: Decoder(schema, None, logical=logical)
        )
    return writer.compiled_with(
        reader, logical, lambda schema, other: Decoder(schema, other, logical=logical)
    )


def _writer_form_of(schema: AvroSchema, logical: bool, wrapped: bool) -> Form:
    return schema.compiled(
        ("writer", logical, wrapped),
        lambda compiled: writer_form(compiled.root, logical=logical, wrapped=wrapped),
    )


def _reader_form_of(schema: AvroSchema, logical: bool, wrapped: bool) -> tuple[Form, bool]:
    return schema.compiled(
        ("reader", logical, wrapped),
        lambda compiled: reader_form(compiled.root, logical=logical, wrapped=wrapped),
    )


def _reason(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
