"""Encodes and decodes values in Avro's binary encoding, with a writer's and a reader's schema.

Values have fastavro's shape: dicts, lists, texts, numbers; with `logical`, logical types are dates,
times, decimals and UUIDs. A pair `(name, value)` selects a branch of a union. fastavro itself only
converts logical types: its codec accepts invalid values, and deeply nested bytes crash its process.
"""

from struct import error as StructError  # noqa: N812  # An exception by a name in lower case.
from typing import Any, Final

from headrace.serdes.avro.empty_items import EmptyItems
from headrace.serdes.avro.projection import RAW_VALUES, VALUES, Shape, projection
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.avro.unfit import Unfit
from headrace.serdes.avro.writing import write_of
from headrace.serdes.payload_errors import CorruptPayload, UnfitValue

FAILURES: Final = (IndexError, StructError, ValueError, ArithmeticError, RecursionError)
"""Errors raised for truncated bytes, invalid text and dates beyond any calendar."""


def encode(schema: AvroSchema, value: Any, *, logical: bool = True) -> bytes:
    """Encode a value; missing fields get their defaults. `UnfitValue` names an invalid field."""
    out = bytearray()
    encoder_of(schema, logical=logical).write(out, value)
    return bytes(out)


def decode(
    writer: AvroSchema,
    reader: AvroSchema | None,
    payload: bytes | bytearray | memoryview,
    *,
    logical: bool = True,
) -> Any:
    """Decode a whole payload, projected to the reader's schema if there is one."""
    return decoder_of(writer, reader, logical=logical).read_whole(payload)


class Encoder:
    """Writes values of one schema."""

    def __init__(self, schema: AvroSchema, *, logical: bool) -> None:
        self._write = write_of(schema.root, logical=logical)

    def write(self, out: bytearray, value: Any) -> None:
        """Append a value's bytes; on `UnfitValue` the buffer is unchanged."""
        begin = len(out)
        try:
            self._write(value, out)
        except Unfit as error:
            del out[begin:]
            raise error.as_error() from None
        except RecursionError:
            del out[begin:]
            raise UnfitValue("the value nests too deep") from None


def encoder_of(schema: AvroSchema, *, logical: bool = True) -> Encoder:
    return schema.compiled(
        ("encoder", logical), lambda compiled: Encoder(compiled, logical=logical)
    )


class Decoder:
    """Reads values of a writer's schema in sequence, projected to the reader's schema if any."""

    def __init__(self, writer: AvroSchema, reader: AvroSchema | None, shape: Shape) -> None:
        node = writer.root if reader is None else reader.root
        self._read = projection(writer.root, node, shape)
        self._empty_items = writer.compiled("empty", lambda schema: EmptyItems(schema.root))

    def read(self, data: bytes, position: int = 0) -> tuple[Any, int]:
        """Return the value at a position, and its end."""
        self._empty_items.check(data, position)
        try:
            return self._read(data, position)
        except FAILURES as error:
            raise CorruptPayload(
                f"the payload does not fit its schema: {_reason(error)}"
            ) from error

    def read_whole(self, payload: bytes | bytearray | memoryview) -> Any:
        """Return the value of a payload that contains nothing else."""
        data = payload if isinstance(payload, bytes) else bytes(payload)
        value, end = self.read(data)
        if end != len(data):
            raise CorruptPayload(f"{len(data) - end} bytes are left over after the value")
        return value


def decoder_of(writer: AvroSchema, reader: AvroSchema | None, *, logical: bool = True) -> Decoder:
    shape = VALUES if logical else RAW_VALUES
    if reader is None:
        return writer.compiled(("decoder", logical), lambda schema: Decoder(schema, None, shape))
    return writer.compiled_with(
        reader, logical, lambda schema, other: Decoder(schema, other, shape)
    )


def _reason(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
