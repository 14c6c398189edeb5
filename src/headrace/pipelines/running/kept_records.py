"""Records as quarantine keeps them: where they were, and the bytes that they were."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from headrace.lake.far_times import micros_of
from headrace.lake.quarantine import QUARANTINED_AT, TOLD_BY, UNREADABLE
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
    """Those that are looked for where they were."""
    apart: dict[Place, tuple[KeptRecord, ...]] = field(default_factory=dict)
    """Those that are made of their bytes alone; a place may have had several."""

    @classmethod
    def of(cls, rows: pa.Table, remade: Set[str] = frozenset()) -> Self:
        """Those of rows of a quarantine table; of several rows of a record any has its bytes.

        In topics that were made again a row may be of a record of before or of now. Those whose
        bytes were not kept are no records there: nobody knows which they would be.
        """
        found: dict[Place, KeptRecord] = {}
        apart: dict[Place, list[dict[str, Any]]] = {}
        for row in rows.select([*PLACE, "payload", "row", "rule", QUARANTINED_AT]).to_pylist():
            place = (row["topic"], row["partition"], row["offset"])
            if None in place:
                continue
            if row["topic"] in remade:
                if row["payload"] is not None:
                    apart.setdefault(place, []).append(row)
            elif place not in found or found[place].payload is None:
                found[place] = _kept(row)
        return cls(found, {place: _told_apart(given) for place, given in apart.items()})

    @property
    def wanted(self) -> set[Place]:
        return self.records.keys() | self.apart.keys()

    def of_bytes(self, gone: Iterable[Place]) -> list[tuple[Place, KeptRecord]]:
        """Those that can only be made of their bytes, if some are not where they were."""
        found = [(place, self.records[place]) for place in sorted(gone)]
        alone = [(place, one) for place in sorted(self.apart) for one in self.apart[place]]
        return [(place, one) for place, one in found + alone if one.payload is not None]


def table_of(places: Iterable[Place]) -> pa.Table:
    """Places as the rows of a table."""
    rows = [dict(zip(PLACE, place, strict=True)) for place in places]
    kinds = (pa.string(), pa.int32(), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema(list(zip(PLACE, kinds, strict=True))))


def decoded(
    records: Sequence[tuple[Place, KeptRecord]],
    names: tuple[str, ...],
    source: Source,
    settings: PipelineSettings,
    schema: pa.Schema,
) -> pa.Table:
    """Records made anew of their bytes, as the source would give them.

    `names` are those of the columns with their places, and `schema` has all columns.
    Of a record that is gone nobody knows the key and the headers any more; they are null.
    """
    payloads = pa.array([one.payload for _, one in records], pa.binary())
    columns = _of_payloads(payloads, source, settings)
    for number, name in enumerate(names):
        columns[name] = pa.array([place[number] for place, _ in records])
    times = [one.micros for _, one in records]
    prefix = names[0].removesuffix(PLACE[0])
    columns[f"{prefix}timestamp"] = pa.array(times, pa.timestamp("us", "UTC"))
    arrays = [
        columns[one.name].cast(one.type)
        if one.name in columns
        else pa.nulls(len(records), one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _told_apart(rows: Iterable[Mapping[str, Any]]) -> tuple[KeptRecord, ...]:
    """The records that rows of one place are of, when the place had several, one after the other.

    Other bytes are another record. Of the same bytes there are as many as one teller knows of: a
    source puts a record aside once, and rules refuse all rows of a record in one batch. Those that
    a redrive has refused together have one moment, so two such records of the same bytes are one
    from then on, unless they could not be read.
    """
    tellers: dict[bytes, dict[str | None, dict[Any, KeptRecord]]] = {}
    for row in rows:
        is_unreadable = row["rule"] == UNREADABLE
        teller = f"{_json(row).get(TOLD_BY, '')}" if is_unreadable else None
        known = tellers.setdefault(row["payload"], {}).setdefault(teller, {})
        known.setdefault(len(known) if is_unreadable else row[QUARANTINED_AT], _kept(row))
    most = (max(known.values(), key=len) for known in tellers.values())
    return tuple(one for known in most for one in known.values())


def _kept(row: Mapping[str, Any]) -> KeptRecord:
    return KeptRecord(row["payload"], _micros(row))


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


def _json(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a refused row tells of itself."""
    told = json.loads(row["row"]) if row["row"] else None
    return told if isinstance(told, dict) else {}


def _micros(row: Mapping[str, Any]) -> int | None:
    """The record's time, where a refused row tells one in the words of JSON."""
    found = _json(row).get("timestamp")
    try:
        return micros_of(found) if isinstance(found, str) else None
    except ValueError:
        return None  # A column of the flow's own, that only has the name.
