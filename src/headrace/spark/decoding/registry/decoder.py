"""Decoding payloads in a registry's wire format by the schema of their id.

All rows have the columns of one reader's schema, which is known when the query is planned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.serdes.wire_format import ID_SIZE
from headrace.spark.decoding.columns.spans import STRING, VOID, Spans, spans_of
from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.errors import InvalidSchema
from headrace.spark.decoding.registry.client import RegisteredSchema, Registry

UNKNOWN_IDS_MAX = 100
"""The lookups of unknown ids per block; garbage may have as many different ids as rows."""

UNFRAMED, NO_PAYLOAD = -1, -2
"""The ids of payloads that name no schema, and of missing payloads."""

NOT_FRAMED = "not in the registry's wire format: it does not begin with a zero byte and an id"


@dataclass(frozen=True, slots=True)
class Format:
    """A format with registered schemas."""

    type: str
    """Its name in the registry."""
    decoder_for: Callable[[Any, RegisteredSchema], Decoder]
    """Returns a decoder to the rows of the reader; InvalidSchema if there are no such rows."""


@dataclass(frozen=True)
class RegistryDecoder:
    """Decodes blocks of payloads with ids in front."""

    registry: Registry
    format: Format
    reader: Decoder
    """Its columns are those of all rows."""
    _decoders: dict[int, Decoder | str] = field(default_factory=dict, compare=False)
    """The decoder of each id, or an error message."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoders": {}}

    @property
    def schema(self) -> Any:
        return self.reader.schema

    def decode(self, payloads: Any) -> Decoded:
        framed = unframe(payloads)
        ids = np.unique(framed.ids)
        if len(ids) == 1 and ids[0] >= 0:
            decoder = self._decoder(int(ids[0]))
            if not isinstance(decoder, str):
                return decoder.decode(framed.bodies)
        parts, places, unknown = [], [], 0
        for id_ in ids:
            rows = np.flatnonzero(framed.ids == id_)
            decoder = (
                f"schema {id_} was not looked up: {UNKNOWN_IDS_MAX} others are unknown"
                if unknown > UNKNOWN_IDS_MAX
                else self._decoder(int(id_))
            )
            if isinstance(decoder, str):
                unknown += id_ >= 0
                parts.append(self._without_rows(len(rows), decoder or None))
            else:
                parts.append(decoder.decode(framed.bodies.take(pa.array(rows))))
            places.append(rows)
        return in_order(parts, places, self.schema)

    def _decoder(self, id_: int) -> Decoder | str:
        """Return the decoder of an id, or the error message of its payloads."""
        if id_ == NO_PAYLOAD:
            return ""
        if id_ == UNFRAMED:
            return NOT_FRAMED
        found = self._decoders.get(id_)
        if found is not None:
            return found
        written = self.registry.schema(id_)
        if written is None:
            return f"the schema registry has no schema {id_}"  # Not cached: it may be added later.
        try:
            refuse_type(written, self.format.type)
            self._decoders[id_] = self.format.decoder_for(self.reader, written)
        except InvalidSchema as error:
            self._decoders[id_] = f"schema {id_} cannot be read: {error}"
        return self._decoders[id_]

    def _without_rows(self, count: int, error: str | None) -> Decoded:
        nothing = self.reader.decode(pa.nulls(count, pa.binary()))
        return Decoded(nothing.columns, pa.array([error] * count, pa.string()))


@dataclass(frozen=True, slots=True)
class Framed:
    """Payloads without their headers, and the id of each, or UNFRAMED or NO_PAYLOAD."""

    ids: Any
    bodies: Any


def unframe(payloads: Any) -> Framed:
    """Split a block of payloads as `serdes.wire_format.id_at_front` splits one."""
    from headrace.spark.decoding.columns.scalars import bytes_column

    spans = spans_of(payloads)
    is_here = spans.kinds != VOID
    is_framed = is_here & (spans.ends - spans.starts >= ID_SIZE)
    starts = np.where(is_framed, spans.starts, 0)
    ids = np.zeros(len(spans), np.int64)
    if len(spans.data) < ID_SIZE:
        is_framed[:] = False
    else:
        is_framed &= spans.data[starts] == 0
        for place in range(1, ID_SIZE):
            ids = ids << 8 | spans.data[starts + place]
    ids = np.where(is_framed, ids, np.where(is_here, UNFRAMED, NO_PAYLOAD))
    bodies = Spans(
        spans.data,
        np.where(is_framed, spans.starts + ID_SIZE, 0).astype(np.int32),
        np.where(is_framed, spans.ends, 0).astype(np.int32),
        np.where(is_framed, STRING, VOID).astype(np.uint8),
        spans.rows,
    )
    return Framed(ids, bytes_column(bodies, pa.binary()))


def in_order(parts: list[Decoded], places: list[Any], schema: Any) -> Decoded:
    """Return the rows of several parts in the order of the payloads."""
    if not parts:
        return Decoded(pa.RecordBatch.from_pylist([], schema), pa.array([], pa.string()))
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    columns = pa.Table.from_batches([part.columns for part in parts], schema)
    columns = columns.combine_chunks().take(order).combine_chunks()
    errors = pa.concat_arrays([part.errors for part in parts]).take(order)
    return Decoded(columns.to_batches()[0], errors)


def refuse_type(written: RegisteredSchema, type_: str) -> None:
    if written.type != type_:
        raise InvalidSchema(f"its type is {written.type}, not {type_}")
