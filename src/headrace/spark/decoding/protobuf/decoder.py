"""Protobuf payloads to columns: messages parsed by the Protobuf library, then column by column.

A field that can tell whether it was set is null if it was not; one that cannot (proto3's plain
scalars) has its default value. Fields that the schema does not know are passed over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
)
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import (
    GetMessageClass,
)

from headrace.spark.decoding.decoder import Decoded, batch_of
from headrace.spark.decoding.protobuf.schemas import (
    TIMESTAMP_MESSAGE,
    arrow_schema,
    is_map,
    message_of,
)

Getter = Callable[[Any], Any]

SECONDS_MAX = 9_000_000_000_000

BAD_VALUE = (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError, ValueError)
"""What a parsed message's value can still be refused with."""


@dataclass(frozen=True)
class ProtobufDecoder:
    """Reads messages of one type, by its descriptors."""

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
        columns = self._columns(parsed, errors)
        batch = batch_of(columns, self.schema, len(payloads))
        return Decoded(batch, pa.array(errors, pa.string()))

    def _columns(self, parsed: list[Any], errors: list[str | None]) -> list[Any]:
        """A column per field. If one refuses a value, its row is bad and all are made again."""
        columns: list[Any] = []
        for field, getter in zip(self.schema, self.getters, strict=True):
            try:
                values = [None if message is None else getter(message) for message in parsed]
                columns.append(pa.array(values, field.type))
            except BAD_VALUE:
                self._note_refused(field, getter, parsed, errors)
                return self._columns(parsed, errors)
        return columns

    def _note_refused(
        self, field: Any, getter: Getter, parsed: list[Any], errors: list[str | None]
    ) -> None:
        for row, message in enumerate(parsed):
            if message is None:
                continue
            try:
                pa.array([getter(message)], field.type)
            except BAD_VALUE as error:
                errors[row] = f"{field.name}: {str(error)[:200]}"
                parsed[row] = None


def getter_of(field: FieldDescriptor) -> Getter:
    """How a field's value is taken from a message, as a value that Arrow takes."""
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
        raise OverflowError(f"{timestamp.seconds} seconds since 1970 are no timestamp")
    return int(timestamp.seconds) * 1_000_000 + int(timestamp.nanos) // 1000
