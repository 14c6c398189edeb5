"""Payloads in a registry's wire format: each is read by the schema whose id it carries.

All rows have the columns of one reader's schema, which is known when the query is planned.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.avro.decoder import AvroDecoder
from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.errors import InvalidSchema
from headrace.spark.decoding.registry.client import RegisteredSchema, Registry
from headrace.spark.decoding.registry.wire_format import (
    NO_PAYLOAD,
    UNFRAMED,
    null_payloads,
    unframe,
)

UNKNOWN_IDS_MAX = 100
"""So many ids of one block are asked for in vain; garbage may look like as many as it has rows."""

NOT_FRAMED = "not in the registry's wire format: it does not begin with a zero byte and an id"


class Formats(Protocol):
    """How payloads of a registered schema are read as rows of one reader's."""

    @property
    def reader(self) -> Decoder: ...

    def decoder_for(self, written: RegisteredSchema) -> Decoder:
        """Raises InvalidSchema if payloads of this schema cannot become such rows."""
        ...


@dataclass(frozen=True)
class AvroFormats:
    """Avro: the writer's schema is resolved to the reader's."""

    reader: AvroDecoder

    def decoder_for(self, written: RegisteredSchema) -> Decoder:
        refuse_type(written, "AVRO")
        decoder = AvroDecoder(
            written.text,
            self.reader.reader_text,
            tuple(text for _, text in written.references),
            self.reader.reader_references,
            self.reader.recursive_depth_max,
        )
        decoder.projection  # noqa: B018  # Both schemas are read, or refused, here.
        return decoder


@dataclass(frozen=True)
class JsonFormats:
    """JSON: the id is in front, but the columns alone say what is read."""

    reader: Decoder

    def decoder_for(self, written: RegisteredSchema) -> Decoder:
        refuse_type(written, "JSON")
        return self.reader


@dataclass(frozen=True)
class RegistryDecoder:
    """Reads blocks of payloads with ids in front."""

    registry: Registry
    formats: Formats
    _decoders: dict[int, Decoder | str] = field(default_factory=dict, compare=False)
    """What reads the payloads of an id, or why nothing does."""

    def __getstate__(self) -> dict[str, Any]:
        return {"registry": self.registry, "formats": self.formats, "_decoders": {}}

    @property
    def schema(self) -> Any:
        return self.formats.reader.schema

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
                f"schema {id_} was not asked for: {UNKNOWN_IDS_MAX} others are unknown"
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
        """What reads the payloads of an id, or the error of each of them."""
        if id_ == NO_PAYLOAD:
            return ""
        if id_ == UNFRAMED:
            return NOT_FRAMED
        found = self._decoders.get(id_)
        if found is not None:
            return found
        written = self.registry.schema(id_)
        if written is None:
            return f"the schema registry has no schema {id_}"  # It may come yet: not kept.
        try:
            self._decoders[id_] = self.formats.decoder_for(written)
        except InvalidSchema as error:
            self._decoders[id_] = f"schema {id_} cannot be read: {error}"
        return self._decoders[id_]

    def _without_rows(self, count: int, error: str | None) -> Decoded:
        nothing = self.formats.reader.decode(null_payloads(count))
        return Decoded(nothing.columns, pa.array([error] * count, pa.string()))


def in_order(parts: list[Decoded], places: list[Any], schema: Any) -> Decoded:
    """Rows of several parts in the order of the payloads."""
    if not parts:
        return Decoded(pa.RecordBatch.from_pylist([], schema), pa.array([], pa.string()))
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    columns = pa.Table.from_batches([part.columns for part in parts], schema)
    columns = columns.combine_chunks().take(order).combine_chunks()
    errors = pa.concat_arrays([part.errors for part in parts]).take(order)
    return Decoded(columns.to_batches()[0], errors)


def refuse_type(written: RegisteredSchema, type_: str) -> None:
    if written.type != type_:
        raise InvalidSchema(f"it is of type {written.type}, not {type_}")
