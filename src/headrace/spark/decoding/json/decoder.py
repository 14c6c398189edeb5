"""JSON payloads to typed columns, by a schema, as Spark's `from_json` would but with reasons.

Missing fields are null, further ones are passed over, the last of two with one name holds. A STRING
takes any value as it is written. A payload that is not JSON, or has a value that does not fit its
column, is a row with the error.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.failures import NOT_UTF8, Failures, no_failures
from headrace.spark.decoding.columns.spans import VOID, Spans, spans_of
from headrace.spark.decoding.decoder import Decoded, batch_of
from headrace.spark.decoding.errors import InvalidSchema
from headrace.spark.decoding.json.columns import column_of, loosened_schema, object_columns


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
        failures = no_failures(len(payloads))
        roots = spans_of(payloads)
        note_bad_utf8(payloads, roots, failures)
        fields = list(self.declared)
        parts = object_columns(roots, fields, "the payload", failures)
        columns = columns_of(parts, fields, failures)
        messages = failures.messages(roots)
        return Decoded(batch_of(columns, self.schema, len(payloads)), messages)


def columns_of(parts: list[Spans], fields: list[Any], failures: Failures) -> list[Any]:
    """A column per field. A row with one bad value gives no values at all.

    That is known when the last column is made; then the bad rows are voided, and all made again.
    """
    columns = [
        column_of(part, field, field.name, failures)
        for part, field in zip(parts, fields, strict=True)
    ]
    bad = np.flatnonzero(failures.codes)
    if not any((part.kinds[bad] != VOID).any() for part in parts):
        return columns
    for part in parts:
        part.kinds[bad] = VOID
    return [
        column_of(part, field, field.name, failures)
        for part, field in zip(parts, fields, strict=True)
    ]


def note_bad_utf8(payloads: Any, roots: Spans, failures: Failures) -> None:
    """Void the payloads that are not UTF-8, before any string is taken from them."""
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        for index in range(len(roots)):
            if roots.kinds[index] != VOID and not is_utf8(roots.text(index)):
                failures.note(NOT_UTF8, roots, index, 0)
                roots.kinds[index] = VOID


def is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
