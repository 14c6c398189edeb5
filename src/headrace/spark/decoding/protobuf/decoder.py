"""Decoding Protobuf payloads: the Protobuf library parses messages, which become columns.

An unset field with presence is null; without presence (proto3's plain scalars) it has its default
value. Unknown fields are ignored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from headrace.spark.decoding.decoder import Decoded, batch_of, value_columns
from headrace.spark.decoding.protobuf.schemas import (
    TIMESTAMP_MESSAGE,
    arrow_schema,
    is_map,
    message_of,
)

Getter = Callable[[Any], Any]

SECONDS_MAX = 9_000_000_000_000


@dataclass(frozen=True)
class ProtobufDecoder:
    """Decodes messages of one type by its descriptors."""

    descriptors: bytes
    message: str

    @cached_property
    def descriptor(self) -> Descriptor:
        return message_of(self.descriptors, self.message)

    @cached_property
    def schema(self) -> Any:
        return arrow_schema(self.descriptor)

    @cached_property
    def getters(self) -> list[Getter]:
        return [getter_of(field) for field in self.descriptor.fields]

    def __getstate__(self) -> dict[str, Any]:
        return {"descriptors": self.descriptors, "message": self.message}

    def decode(self, payloads: Any) -> Decoded:
        message_class = GetMessageClass(self.descriptor)
        parsed: list[Any] = [None] * len(payloads)
        errors: list[str | None] = [None] * len(payloads)
        for row, payload in enumerate(payloads.to_pylist()):
            if payload is None:
                continue
            try:
                parsed[row] = message_class.FromString(payload)
            except DecodeError as error:
                errors[row] = f"not a message {self.descriptor.full_name}: {error}"
        columns = value_columns(self.schema, parsed, self.getters, errors)
        batch = batch_of(columns, self.schema, len(payloads))
        return Decoded(batch, pa.array(errors, pa.string()))


def getter_of(field: FieldDescriptor) -> Getter:
    """Return a function that takes a field's value from a message, converted for Arrow."""
    name = field.name
    if is_map(field):
        of_value = converter_of(field.message_type.fields_by_name["value"])
        return lambda message: [
            (key, of_value(value)) for key, value in getattr(message, name).items()
        ]
    convert = converter_of(field)
    if field.is_repeated:
        return lambda message: [convert(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    if convert is unchanged:
        return lambda message: getattr(message, name)
    return lambda message: convert(getattr(message, name))


def converter_of(field: FieldDescriptor) -> Getter:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        return unchanged
    if field.message_type.full_name == TIMESTAMP_MESSAGE:
        return micros_of
    getters = [(part.name, getter_of(part)) for part in field.message_type.fields]
    return lambda message: {name: getter(message) for name, getter in getters}


def unchanged(value: Any) -> Any:
    return value


def micros_of(timestamp: Any) -> int:
    if not -SECONDS_MAX <= timestamp.seconds <= SECONDS_MAX:
        raise OverflowError(f"{timestamp.seconds} seconds since 1970 are not a valid timestamp")
    return int(timestamp.seconds) * 1_000_000 + int(timestamp.nanos) // 1000
