"""The columns that Spark sees: their schema, and RecordBatches of exactly that schema.

Without a payload format they are the stock connector's. With one they are the decoded columns,
`_error` and `_payload` (the bytes, only where they could not be decoded, unless all are kept), and
where the record came from. Records that could not be decoded are among them unless someone takes
them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from headrace.client.cluster import near_names
from headrace.spark.refuge import Unreadable
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.offsets import TopicPartition
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


class Decoded(Protocol):
    """What a decoder makes of payloads."""

    @property
    def columns(self) -> Any: ...

    @property
    def errors(self) -> Any: ...


class Decoder(Protocol):
    """As much of a payload decoder as rows need."""

    @property
    def schema(self) -> Any: ...

    def decode(self, payloads: Any) -> Decoded: ...


class Aside(Protocol):
    """Takes the records that could not be read."""

    def put(self, records: Unreadable) -> None: ...


def row_schema(
    columns: Sequence[str] = (),
    *,
    has_headers: bool = False,
    decoder: Decoder | None = None,
    prefix: str = "",
) -> Any:
    """The schema of rows, by default or for the columns that are asked for, in their order."""
    offered = _offered(decoder, prefix)
    if columns:
        for name in columns:
            if name not in offered:
                near = near_names(name, offered)
                raise InvalidOption(f"columns names {name!r}, which there is not{near}")
        chosen = list(columns)
    elif decoder is None:
        chosen = [name for name in _TYPES if has_headers or name != "headers"]
    else:
        headers = [f"{prefix}headers"] if has_headers else []
        chosen = [*decoder.schema.names, ERROR, PAYLOAD, *(prefix + name for name in _ORIGIN)]
        chosen += headers
    return pa.schema([pa.field(name, offered[name]) for name in chosen])


def _offered(decoder: Decoder | None, prefix: str) -> dict[str, Any]:
    """Every column that can be asked for, with its type."""
    if decoder is None:
        return dict(_TYPES)
    decoded = {column.name: column.type for column in decoder.schema}
    own = {ERROR: pa.string(), PAYLOAD: pa.binary()}
    origin = {prefix + name: kind for name, kind in _TYPES.items() if name != "value"}
    for name in (*own, *(prefix + name for name in _ORIGIN)):
        if name in decoded:
            raise InvalidOption(
                f"the payload has a column {name!r}, which is also what the source tells of a"
                " record; set metadataPrefix, such as metadataPrefix=kafka_"
            )
    return {**origin, **decoded, **own}


class Rows:
    """Makes RecordBatches out of the columns of records."""

    def __init__(
        self,
        schema: Any,
        decoder: Decoder | None = None,
        prefix: str = "",
        *,
        keeps_payloads: bool = False,
        aside: Aside | None = None,
    ) -> None:
        self._schema = schema
        self._aside = aside
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
            values=is_decoded or aside is not None or (decoder is None and "value" in own),
            headers="headers" in own,
        )

    def batch(self, place: TopicPartition, records: RecordColumns, *, is_append_time: bool) -> Any:
        """A RecordBatch of the schema that was promised to Spark."""
        found = self._decoded(records) if self._decoder is not None else {}
        arrays = [
            found[name]
            if name in found
            else self._of_record(name, place, records, is_append_time=is_append_time)
            for name in self._schema.names
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        errors = found.get(ERROR)
        if self._aside is None or errors is None or errors.null_count == len(errors):
            return batch
        self._put_aside(self._aside, place, records, errors)
        return batch.filter(errors.is_null())

    def _put_aside(
        self, aside: Aside, place: TopicPartition, records: RecordColumns, errors: Any
    ) -> None:
        """Take out what could not be read; to filter copies it, as the buffer is used again."""
        is_bad = errors.is_valid()
        error = errors.filter(is_bad)
        aside.put(
            Unreadable(
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
        """The same value in every row; one long array is made once and cut to length."""
        kept = self._constants.get((column, value))
        if kept is None or len(kept) < rows:
            kept = pa.repeat(pa.scalar(value, _TYPES[column]), 1 << max(10, rows.bit_length()))
            self._constants[column, value] = kept
        return kept.slice(0, rows)


def _where_bad(errors: Any, payloads: Any) -> Any:
    import pyarrow.compute as pc

    return pc.if_else(errors.is_valid(), payloads, pa.scalar(None, pa.binary()))
