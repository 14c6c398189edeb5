"""Decodes bytes to Avro's JSON encoding, as Java's JsonEncoder writes it.

A union's value names its branch; bytes are texts of the first 256 characters; logical types keep
their encoded form.
"""

import math
from typing import Any

from headrace.serdes.avro.codec import Decoder
from headrace.serdes.avro.model import Node, Union, branch_name
from headrace.serdes.avro.projection import PLAIN, Read, Shape, as_written, read_fixed
from headrace.serdes.avro.schema import AvroSchema


def json_of_payload(schema: AvroSchema, payload: bytes) -> Any:
    """Decode a whole payload to JSON values: lists, dicts and scalars."""
    decoder = schema.compiled("json", lambda writer: Decoder(writer, None, JSON_SHAPE))
    return decoder.read_whole(payload)


def _as_text(read_bytes: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read_bytes(data, position)
        return value.decode("latin-1"), position

    return read


def _as_number(read_number: Read) -> Read:
    """Replace numbers that JSON lacks by texts, as Java does."""

    def read(data: bytes, position: int) -> tuple[Any, int]:
        number, position = read_number(data, position)
        if math.isfinite(number):
            return number, position
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity", position

    return read


def _tagged(read_branch: Read, union: Union, branch: Node) -> Read:
    if branch.kind == "null":
        return read_branch
    name = branch_name(branch)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        value, position = read_branch(data, position)
        return {name: value}, position

    return read


JSON_SHAPE = Shape(
    primitives=PLAIN
    | {
        "bytes": _as_text(PLAIN["bytes"]),
        "float": _as_number(PLAIN["float"]),
        "double": _as_number(PLAIN["double"]),
    },
    fixed=lambda size: _as_text(read_fixed(size)),
    branch=_tagged,
    convert=as_written,
)
