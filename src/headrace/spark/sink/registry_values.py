"""Values by a schema of a registry, in its wire format: each row is a record of the schema."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.spark.sink.errors import WrongOption
from headrace.spark.sink.options import RegistryOptions
from headrace.spark.sink.values import ENCODER, rows_of


@dataclass(slots=True)
class RegistryValues:
    """Writes rows for one topic. Pickled with the options, without what it has learnt."""

    options: RegistryOptions
    topic: str
    _serializer: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> Any:
        return RegistryValues, (self.options, self.topic)

    def check(self) -> None:
        """Refuse a schema that is none, or a registry without an address, before the query runs."""
        try:
            self._serialize()
        except HeadraceError as error:
            raise WrongOption(
                f"values cannot be written as {self.options.format}: {error}"
            ) from error

    def of(self, batch: Any) -> list[bytes | str | None]:
        """The values of a RecordBatch's rows; one of nothing but nulls is a tombstone."""
        serialize = self._serialize().of_values
        keeps_nulls = self.options.format == "avro"
        values: list[bytes | str | None] = []
        for row in rows_of(batch):
            present = {name: value for name, value in row.items() if value is not None}
            if not present:
                values.append(None)
            elif keeps_nulls:
                values.append(serialize(self.topic, row))
            else:
                values.append(serialize(self.topic, msgspec.json.decode(ENCODER.encode(present))))
        return values

    def _serialize(self) -> Any:
        if self._serializer is None:
            self._serializer = self._made()
        return self._serializer

    def _made(self) -> Any:
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
        named = self.options.subject
        return kinds[self.options.format](
            RegistryClient(self.options.url, self.options.login),
            self.options.schema or None,
            subject_name=(lambda topic, part, name: named) if named else topic_subject,
        )
