"""The columns of the source: their schema, and RecordBatches of exactly that schema.

Without a payload format they are the stock connector's. With one they are the decoded columns,
`_error`, `_payload` (the bytes of bad payloads, or of all), and the origin of the record. Records
that cannot be decoded are rows too, unless there is a side output.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from headrace.client.cluster import near_names
from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.decoding.decoder import Decoder
from headrace.spark.side_output import UnreadableRecords
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.record_columns import HEADERS_TYPE, RecordColumns, Wanted

ERROR, PAYLOAD = "_error", "_payload"

_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}
_ORIGIN = ("topic", "partition", "offset", "timestamp")
_CREATE_TIME, _APPEND_TIME = 0, 1


class RecordSink(Protocol):
    """The side output for unreadable records."""

    def put(self, records: UnreadableRecords) -> None: ...


def row_schema(
    columns: Sequence[str] = (),
    *,
    has_headers: bool = False,
    decoder: Decoder | None = None,
    prefix: str = "",
) -> Any:
    """Return the schema of rows, by default or for the wanted columns in their order."""
    offered = _offered(decoder, prefix)
    if columns:
        for name in columns:
            if name not in offered:
                near = near_names(name, offered)
                raise InvalidOption(f"the option columns names the unknown column {name!r}{near}")
        chosen = list(columns)
    elif decoder is None:
        chosen = [name for name in _TYPES if has_headers or name != "headers"]
    else:
        headers = [f"{prefix}headers"] if has_headers else []
        chosen = [*decoder.schema.names, ERROR, PAYLOAD, *(prefix + name for name in _ORIGIN)]
        chosen += headers
    return pa.schema([pa.field(name, offered[name]) for name in chosen])


def _offered(decoder: Decoder | None, prefix: str) -> dict[str, Any]:
    """Return all available columns with their types."""
    if decoder is None:
        return dict(_TYPES)
    decoded = {column.name: column.type for column in decoder.schema}
    own = {ERROR: pa.string(), PAYLOAD: pa.binary()}
    origin = {prefix + name: kind for name, kind in _TYPES.items() if name != "value"}
    for name in (*own, *(prefix + name for name in _ORIGIN)):
        if name in decoded:
            raise InvalidOption(
                f"the payload has a column {name!r}, and so has the source; set metadataPrefix,"
                " such as metadataPrefix=kafka_"
            )
    return {**origin, **decoded, **own}


class Rows:
    """Builds RecordBatches from the columns of records."""

    def __init__(
        self,
        schema: Any,
        decoder: Decoder | None = None,
        prefix: str = "",
        *,
        keeps_payloads: bool = False,
        side_output: RecordSink | None = None,
    ) -> None:
        self._schema = schema
        self._side_output = side_output
        self._keeps_payloads = keeps_payloads
        self._decoder = decoder
        self._prefix = prefix
        self._constants: dict[tuple[str, object], Any] = {}
        decoded = set() if decoder is None else set(decoder.schema.names)
        names = set(schema.names)
        own = {name.removeprefix(prefix) for name in names - decoded if name.startswith(prefix)}
        is_decoded = decoder is not None and bool(names & {*decoded, ERROR, PAYLOAD})
        self.wanted = Wanted(
            keys="key" in own,
            values=is_decoded or side_output is not None or (decoder is None and "value" in own),
            headers="headers" in own,
        )

    def batch(self, place: TopicPartition, records: RecordColumns, *, is_append_time: bool) -> Any:
        """Build a RecordBatch of the schema."""
        found = self._decoded(records) if self._decoder is not None else {}
        arrays = [
            found[name]
            if name in found
            else self._of_record(name, place, records, is_append_time=is_append_time)
            for name in self._schema.names
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        errors = found.get(ERROR)
        if self._side_output is None or errors is None or errors.null_count == len(errors):
            return batch
        self._put(self._side_output, place, records, errors)
        return batch.filter(errors.is_null())

    def _put(
        self, side_output: RecordSink, place: TopicPartition, records: RecordColumns, errors: Any
    ) -> None:
        """Write unreadable records to the side output; the filter copies them out of the buffer."""
        is_bad = errors.is_valid()
        error = errors.filter(is_bad)
        side_output.put(
            UnreadableRecords(
                topic=self._constant("topic", place.topic, len(error)),
                partition=self._constant("partition", place.partition, len(error)),
                offset=records.offsets.filter(is_bad),
                timestamp=records.timestamps.filter(is_bad),
                error=error,
                payload=records.values.filter(is_bad),
            )
        )

    def _decoded(self, records: RecordColumns) -> dict[str, Any]:
        if records.values is None or self._decoder is None:
            return {}
        decoded = self._decoder.decode(records.values)
        names = decoded.columns.schema.names
        found = {name: decoded.columns.column(index) for index, name in enumerate(names)}
        found[ERROR] = decoded.errors
        if PAYLOAD in self._schema.names:
            is_kept = self._keeps_payloads
            found[PAYLOAD] = (
                records.values if is_kept else _where_bad(decoded.errors, records.values)
            )
        return found

    def _of_record(
        self, column: str, place: TopicPartition, records: RecordColumns, *, is_append_time: bool
    ) -> Any:
        match column.removeprefix(self._prefix):
            case "key":
                return records.keys
            case "value":
                return records.values
            case "topic":
                return self._constant("topic", place.topic, records.rows)
            case "partition":
                return self._constant("partition", place.partition, records.rows)
            case "offset":
                return records.offsets
            case "timestamp":
                return records.timestamps
            case "timestampType":
                kind = _APPEND_TIME if is_append_time else _CREATE_TIME
                return self._constant("timestampType", kind, records.rows)
            case _:
                return records.headers

    def _constant(self, column: str, value: object, rows: int) -> Any:
        """Return a constant column as a slice of a cached array."""
        kept = self._constants.get((column, value))
        if kept is None or len(kept) < rows:
            kept = pa.repeat(pa.scalar(value, _TYPES[column]), 1 << max(10, rows.bit_length()))
            self._constants[column, value] = kept
        return kept.slice(0, rows)


def _where_bad(errors: Any, payloads: Any) -> Any:
    import pyarrow.compute as pc

    return pc.if_else(errors.is_valid(), payloads, pa.scalar(None, pa.binary()))
