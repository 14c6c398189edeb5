"""Values of records from rows: JSON in the form of Spark's `to_json`, or by a registered schema."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.lake.arrow_times import python_values
from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import RegistryOptions

_ENCODER = msgspec.json.Encoder(decimal_format="number")


def json_values(batch: Any) -> list[bytes | str | None]:
    """Return a JSON object for each row of a RecordBatch, without null columns.

    A row of nulls is a tombstone, as in the source.
    """
    return [_ENCODER.encode(present) if present else None for _, present in _rows(batch)]


@dataclass(slots=True)
class RegistryValues:
    """Serializes rows by a schema of a registry; pickled without its cache."""

    options: RegistryOptions
    topic: str
    _serializer: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> Any:
        return RegistryValues, (self.options, self.topic)

    def check(self) -> None:
        """Reject an invalid schema, or a registry without an address, before the query runs."""
        try:
            self._serialize()
        except HeadraceError as error:
            raise WrongOption(
                f"values cannot be written as {self.options.format}: {error}"
            ) from error

    def of(self, batch: Any) -> list[bytes | str | None]:
        """Serialize the rows of a RecordBatch; a row of nulls is a tombstone."""
        serialize = self._serialize().of_values
        keeps_nulls = self.options.format == "avro"
        values: list[bytes | str | None] = []
        for row, present in _rows(batch):
            if not present:
                values.append(None)
            elif keeps_nulls:
                values.append(serialize(self.topic, row))
            else:
                values.append(serialize(self.topic, msgspec.json.decode(_ENCODER.encode(present))))
        return values

    def _serialize(self) -> Any:
        if self._serializer is None:
            self._serializer = self._new_serializer()
        return self._serializer

    def _new_serializer(self) -> Any:
        from headrace.serdes import (
            AvroSerializer,
            JsonSchemaSerializer,
            ProtobufSerializer,
            RegistryClient,
            topic_subject,
        )

        kinds: dict[str, Any] = {
            "avro": AvroSerializer,
            "json": JsonSchemaSerializer,
            "protobuf": ProtobufSerializer,
        }
        subject = self.options.subject
        return kinds[self.options.format](
            RegistryClient(self.options.url, self.options.login),
            self.options.schema or None,
            subject_name=(lambda topic, part, name: subject) if subject else topic_subject,
        )


def _rows(batch: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the rows of a RecordBatch as Python values, with and without nulls."""
    names = batch.schema.names
    columns = [python_values(column, maps_as_dicts=True) for column in batch.columns]
    for values in zip(*columns, strict=True):
        row = dict(zip(names, values, strict=True))
        yield row, {name: value for name, value in row.items() if value is not None}
