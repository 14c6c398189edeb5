"""Records as quarantine keeps them: where they were, and the bytes that they were."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from headrace.lake.far_times import micros_of
from headrace.pipelines.model import ERROR, PAYLOAD, PipelineSettings, Source
from headrace.pipelines.sources import source_options, source_properties

PLACE = ("topic", "partition", "offset")
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """What is known of one record but for where it was."""

    payload: bytes | None = None
    micros: int | None = None
    """When it was sent or stored, in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """The records that refused rows name, each once."""

    records: dict[Place, KeptRecord]

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Those of rows of a quarantine table; of several rows of a record any has its bytes."""
        found: dict[Place, KeptRecord] = {}
        for row in rows.select([*PLACE, "payload", "row"]).to_pylist():
            place = (row["topic"], row["partition"], row["offset"])
            if None not in place and (place not in found or found[place].payload is None):
                found[place] = KeptRecord(row["payload"], _micros(row["row"]))
        return cls(found)

    def decoded(
        self,
        places: set[Place],
        names: tuple[str, ...],
        source: Source,
        settings: PipelineSettings,
        schema: pa.Schema,
    ) -> pa.Table:
        """Records made anew of their bytes, as the source would give them.

        `names` are those of the columns with their places, and `schema` has all columns.
        Of a record that is gone nobody knows the key and the headers any more; they are null.
        """
        wanted = [place for place in sorted(places) if self.records[place].payload is not None]
        payloads = pa.array([self.records[place].payload for place in wanted], pa.binary())
        columns = _of_payloads(payloads, source, settings)
        for number, name in enumerate(names):
            columns[name] = pa.array([place[number] for place in wanted])
        times = [self.records[place].micros for place in wanted]
        prefix = names[0].removesuffix(PLACE[0])
        columns[f"{prefix}timestamp"] = pa.array(times, pa.timestamp("us", "UTC"))
        arrays = [
            columns[one.name].cast(one.type)
            if one.name in columns
            else pa.nulls(len(wanted), one.type)
            for one in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def table_of(places: Iterable[Place]) -> pa.Table:
    """Places as the rows of a table."""
    rows = [dict(zip(PLACE, place, strict=True)) for place in places]
    kinds = (pa.string(), pa.int32(), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema(list(zip(PLACE, kinds, strict=True))))


def _of_payloads(payloads: Any, source: Source, settings: PipelineSettings) -> dict[str, Any]:
    if source.format == "bytes":
        return {"value": payloads}
    from headrace.spark.decoding import decoder_of

    decoder = decoder_of(source_options(source, settings), source_properties(source, settings))
    assert decoder is not None, "the source has a format"
    found = decoder.decode(payloads)
    names = found.columns.schema.names
    columns = {name: found.columns.column(number) for number, name in enumerate(names)}
    return {**columns, ERROR: found.errors, PAYLOAD: payloads}


def _micros(row: str | None) -> int | None:
    """The record's time, where a refused row tells one in the words of JSON."""
    told = json.loads(row) if row else None
    found = told.get("timestamp") if isinstance(told, dict) else None
    try:
        return micros_of(found) if isinstance(found, str) else None
    except ValueError:
        return None  # A column of the flow's own, that only has the name.
