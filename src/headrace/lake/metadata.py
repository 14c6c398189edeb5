"""What a table says of itself in its log: schema, properties, and what these ask of its writers."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from headrace.lake.errors import AppendOnly
from headrace.lake.schemas import leaves

APPEND_ONLY = {"delta.appendOnly": "true"}
"""No commit may change or remove a row; every writer of Delta tables has to obey."""
FEATURES_LEVEL = 7
"""The writer version from which a table names each feature; below, a version means a set of them.

`appendOnly` and `invariants` are what version 2 means, which all tables of ours have at least.
"""


def is_append_only(properties: Mapping[str, str]) -> bool:
    """Whether the properties of a table keep its rows from being changed."""
    return properties.get("delta.appendOnly", "").lower() == "true"


def takes_rows(action: Mapping[str, Any]) -> bool:
    """Whether an action of a commit takes rows away, and does not put them elsewhere only."""
    return "remove" in action and bool(action["remove"]["dataChange"])


def check_may_shrink(properties: Mapping[str, str], table: str, operation: str) -> None:
    """Refuse to take rows away where only more may come.

    The wheel asks this of some of its operations only, and calls its refusal a lost race.
    """
    if is_append_only(properties):
        raise AppendOnly(
            f"{operation} of {table} would change or remove rows, and the table only grows"
            " (delta.appendOnly): what is wrong in it is put right in the tables that are made of"
            " it, or by a replay, which builds it anew beside this one"
        )


def changed_metadata(
    delta: DeltaTable,
    schema: pa.Schema,
    properties: Mapping[str, str],
    dropped: Collection[str] = (),
) -> Iterator[Mapping[str, Any]]:
    """The metadata with another schema and other properties, and a protocol that fits them."""
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
    """A protocol with the features that are new, if any are: a table that names none has two."""
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
