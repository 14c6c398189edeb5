"""JSON payloads to typed columns, by a schema, as Spark's `from_json` would but with reasons.

Missing fields are null, further ones are passed over, the last of two with one name holds. A
payload that is not JSON, or has a value that does not fit its column, is a row with the error.
Other than in Spark, a STRING takes a number or an object just as it is written, and text behind the
object is an error.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.spark.decoding.columns.nullability import loosened_schema
from headrace.spark.decoding.decoder import Decoded, batch_of
from headrace.spark.decoding.errors import InvalidSchema


@dataclass(frozen=True)
class JsonDecoder:
    """Reads objects whose fields are the columns of `declared`."""

    declared: Any

    def __post_init__(self) -> None:
        for field in self.declared:
            refuse_keys(field.type, field.name)

    @property
    def schema(self) -> Any:
        return loosened_schema(self.declared)

    def decode(self, payloads: Any) -> Decoded:
        from headrace.spark.decoding.json.columns import decode_objects

        columns, errors = decode_objects(payloads, list(self.declared))
        return Decoded(batch_of(columns, self.schema, len(payloads)), errors)


def refuse_keys(type_: Any, path: str) -> None:
    """JSON's keys are strings, so a map's keys must be."""
    if pa.types.is_map(type_):
        if not pa.types.is_string(type_.key_type):
            raise InvalidSchema(
                f"{path}: keys of a JSON object are strings: write MAP<STRING, ...>"
            )
        refuse_keys(type_.item_type, f"{path}[]")
    elif pa.types.is_list(type_):
        refuse_keys(type_.value_type, f"{path}[]")
    elif pa.types.is_struct(type_):
        for field in type_:
            refuse_keys(field.type, f"{path}.{field.name}")
