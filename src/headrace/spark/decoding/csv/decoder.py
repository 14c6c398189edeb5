"""CSV payloads, each one line, to typed columns by a schema.

Fields come in the order of the columns. An empty field is null, an empty one in quotes is an empty
string; a quote within quotes is written twice, or behind the sign that escapes. A line with more or
fewer fields than the schema has columns is a row with the error, as is a value that does not fit.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.spark.decoding.columns.nullability import loosened_schema
from headrace.spark.decoding.ddl import ddl_of
from headrace.spark.decoding.decoder import Decoded, batch_of
from headrace.spark.decoding.errors import InvalidSchema


@dataclass(frozen=True)
class CsvDecoder:
    """Reads lines of delimited fields."""

    declared: Any
    delimiter: str = ","
    null_value: str = ""
    header: bool = False
    """A payload that consists of the columns' names is a header: a row of nulls, no error."""
    escape: str = ""
    """Within quotes, this sign before a quote or before itself means only the second of the two."""

    def __post_init__(self) -> None:
        for field in self.declared:
            if pa.types.is_nested(field.type):
                raise InvalidSchema(
                    f"{field.name}: a CSV field cannot be {ddl_of(field.type)}; "
                    "declare it as STRING, or use JSON"
                )

    @property
    def schema(self) -> Any:
        return loosened_schema(self.declared)

    def decode(self, payloads: Any) -> Decoded:
        from headrace.spark.decoding.csv.columns import Lines

        lines = Lines(self.declared, self.delimiter, self.null_value, self.header, self.escape)
        columns, errors = lines.decode(payloads)
        return Decoded(batch_of(columns, self.schema, len(payloads)), errors)
