"""The metadata of a table in its log: schema, properties, and the protocol that they require."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from headrace.lake.errors import AppendOnly
from headrace.lake.schemas import leaves

APPEND_ONLY = {"delta.appendOnly": "true"}
"""No commit may change or remove a row; all writers of Delta tables enforce this."""
FEATURES_LEVEL = 7
"""The writer version from which a table names each feature; lower versions stand for fixed sets.

All our tables have at least version 2, which means `appendOnly` and `invariants`.
"""


def is_append_only(properties: Mapping[str, str]) -> bool:
    """Return whether the properties of a table forbid changes of rows."""
    return properties.get("delta.appendOnly", "").lower() == "true"


def takes_rows(action: Mapping[str, Any]) -> bool:
    """Return whether an action of a commit removes rows, and does not merely move them."""
    return "remove" in action and bool(action["remove"]["dataChange"])


def check_may_shrink(properties: Mapping[str, str], table: str, operation: str) -> None:
    """Reject the removal of rows from an append-only table.

    deltalake checks this in some operations only, and reports a conflict then.
    """
    if is_append_only(properties):
        raise AppendOnly(
            f"{operation} of {table} would change or remove rows, and the table is append-only"
            " (delta.appendOnly). Correct the rows in the tables that are computed from it, or"
            " rebuild it by a replay"
        )


def changed_metadata(
    delta: DeltaTable,
    schema: pa.Schema,
    properties: Mapping[str, str],
    dropped: Collection[str] = (),
) -> Iterator[Mapping[str, Any]]:
    """Yield the actions that change schema and properties, and the protocol if needed."""
    metadata = delta.metadata()
    known = {**metadata.configuration, **properties}
    configuration = {key: value for key, value in known.items() if key not in dropped}
    yield from _protocol(delta, schema, configuration)
    yield {
        "metaData": {
            "id": str(metadata.id),
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": DeltaSchema.from_arrow(schema).to_json(),
            "partitionColumns": list(metadata.partition_columns),
            "createdTime": metadata.created_time,
            "configuration": configuration,
        }
    }


def _protocol(
    delta: DeltaTable, schema: pa.Schema, properties: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yield a protocol with the new features, if there are any."""
    protocol = delta.protocol()
    names_features = protocol.min_writer_version >= FEATURES_LEVEL
    readers = set(protocol.reader_features or ())
    old = set(protocol.writer_features or ()) if names_features else {"appendOnly", "invariants"}
    writers = set(old)
    if any(pa.types.is_timestamp(of) and not of.tz for _, of in leaves(schema)):
        readers.add("timestampNtz")
        writers.add("timestampNtz")
    if is_append_only(properties):
        writers.add("appendOnly")
    if writers == old:
        return
    known: dict[str, Any] = {"minReaderVersion": protocol.min_reader_version}
    if readers:
        known = {"minReaderVersion": 3, "readerFeatures": sorted(readers)}
    features = {"minWriterVersion": FEATURES_LEVEL, "writerFeatures": sorted(writers)}
    yield {"protocol": {**known, **features}}
