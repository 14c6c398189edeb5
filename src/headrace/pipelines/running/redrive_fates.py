"""What becomes of each row that is redriven, and how those that are done with are named in SQL."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Self, TypeVar

import pyarrow as pa

from headrace.lake.quarantine import QUARANTINED_AT, TOLD_BY, UNREADABLE
from headrace.pipelines.running.kept_records import Place

LOST = "their records are no longer there to be read, and their bytes were not kept"
UNTOLD = (
    "their payloads could not be decoded, and it cannot be told which rows of their flow come of"
    " them"
)
READ_OTHERWISE = (
    "the table has rows of their records, by another source of their flow, which no longer reads"
    " the one that could not decode them"
)
_NAMELESS = 'topic IS NULL OR "partition" IS NULL OR "offset" IS NULL'
_PER_DELETE = 500
_MOMENT = 'Timestamp(Microsecond, Some("UTC"))'

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided of a flow's rows before any of them was written."""

    is_anew: bool = True
    """Whether rows that name their record are made anew of it, or judged as they are."""
    lost: frozenset[Place] = frozenset()
    """Records that were not there any more, nor their bytes."""
    stored: frozenset[Place] = frozenset()
    """Records of which the table has other rows; made anew, these would come twice."""
    read_otherwise: frozenset[Place] = frozenset()
    """Those of them that only a source which the flow reads no more could not decode."""

    def after(self, wanted: Set[Place], found: Set[Place] | None) -> "Plan":
        """The plan when it is known which of the wanted records are there.

        None where it cannot be told which rows the records make.
        """
        if found is None:
            return Plan(is_anew=False)
        return replace(self, lost=frozenset(wanted - found))

    @classmethod
    def from_json(cls, noted: dict[str, Any]) -> Self:
        places = (
            frozenset((t, p, o) for t, p, o in noted.get(name, ()))
            for name in ("lost", "stored", "read_otherwise")
        )
        return cls(noted["is_anew"], *places)

    def to_json(self) -> dict[str, Any]:
        return {
            "is_anew": self.is_anew,
            "lost": sorted(self.lost),
            "stored": sorted(self.stored),
            "read_otherwise": sorted(self.read_otherwise),
        }

    def is_made_anew(self, place: Place | None, rule: str) -> bool:
        """Whether a row is made anew of its record.

        What could not be read has no other rows, whatever other flows have made of its record;
        unless another source of the flow could read it.
        """
        if place is None or not self.is_anew or place in self.read_otherwise:
            return False
        return rule == UNREADABLE or place not in self.stored


@dataclass(slots=True)
class Fates:
    """For each row whether it is done with, and whether it is judged as it was."""

    is_taken: list[bool] = field(default_factory=list)
    as_they_were: list[bool] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def taken(self) -> int:
        return sum(self.is_taken)


def fates_of(rows: pa.Table, plan: Plan) -> Fates:
    """What becomes of each row of a flow.

    A row of a payload that could not be decoded is nothing but nulls: as it is it would pass where
    it should not.
    """
    fates = Fates()
    for place, rule in zip(places_of(rows), rows["rule"].to_pylist(), strict=True):
        is_anew = plan.is_made_anew(place, rule)
        reason = None
        if is_anew and place in plan.lost:
            reason = LOST
        elif not is_anew and rule == UNREADABLE:
            reason = READ_OTHERWISE if place in plan.read_otherwise else UNTOLD
        fates.is_taken.append(reason is None)
        fates.as_they_were.append(reason is None and not is_anew)
        if reason is not None:
            fates.reasons[reason] += 1
    return fates


def read_otherwise(rows: pa.Table, sources: Set[str]) -> frozenset[Place]:
    """The records that only sources could not read which are none of these, those of a flow now.

    Each source of a topic says for itself what it cannot read. What one could not, another may
    have read, and when the flow goes on with that one alone its rows are there already.
    """
    by_now: set[Place] = set()
    by_others: set[Place] = set()
    columns = zip(places_of(rows), rows["rule"].to_pylist(), rows["row"].to_pylist(), strict=True)
    for place, rule, row in columns:
        if place is not None and rule == UNREADABLE:
            told = json.loads(row) if row else {}
            is_of_now = told.get(TOLD_BY) in (None, *sources)
            (by_now if is_of_now else by_others).add(place)
    return frozenset(by_others - by_now)


def conditions(flow: str, rows: pa.Table, is_taken: Sequence[bool]) -> Iterator[str]:
    """SQL that is true for the taken rows of a flow and for no other row in quarantine.

    A batch is known by its flow and its moment, since rows may have come meanwhile. Within it rows
    are told apart by their records, of which some may be left or belong to another round; those
    that name none are taken for whole moments.
    """
    named: set[int] = set()
    nameless: set[int] = set()
    moments = rows[QUARANTINED_AT].cast(pa.int64()).to_pylist()
    for place, moment, is_one in zip(places_of(rows), moments, is_taken, strict=True):
        if is_one:
            (nameless if place is None else named).add(moment)
    ranges = [" OR ".join(some) for some in _portions(list(_ranges(rows, is_taken)))]
    yield from _at(flow, named, ranges)
    yield from _at(flow, nameless, [f"({_NAMELESS}) AND rule <> '{UNREADABLE}'"])


def _at(flow: str, moments: Set[int], which: Sequence[str]) -> Iterator[str]:
    for some in _portions(sorted(moments)):
        times = ", ".join(f"arrow_cast({moment}, '{_MOMENT}')" for moment in some)
        for one in which:
            yield f"flow = {_quoted(flow)} AND {QUARANTINED_AT} IN ({times}) AND ({one})"


def _ranges(rows: pa.Table, is_taken: Sequence[bool]) -> Iterator[str]:
    """Runs of offsets whose rows are taken: all of them, or all but what could not be read.

    No other part of a record is ever left, when some of it is taken.
    """
    fates: dict[Place, set[bool]] = defaultdict(set)
    for place, is_one in zip(places_of(rows), is_taken, strict=True):
        if place is not None:
            fates[place].add(is_one)
    for (topic, partition, found), run in groupby(
        sorted(fates), key=lambda place: (place[0], place[1], fates[place])
    ):
        offsets = [place[2] for place in run]
        if True in found:
            but = f" AND rule <> '{UNREADABLE}'" if False in found else ""
            yield (
                f'(topic = {_quoted(topic)} AND "partition" = {partition}'
                f' AND "offset" BETWEEN {offsets[0]} AND {offsets[-1]}{but})'
            )


def places_of(rows: pa.Table) -> Iterator[Place | None]:
    """The record that each row names; None if it names none."""
    columns = (rows[name].to_pylist() for name in ("topic", "partition", "offset"))
    for place in zip(*columns, strict=True):
        yield None if None in place else place


def _portions(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """As many at a time as one condition may name."""
    return (items[at : at + _PER_DELETE] for at in range(0, len(items), _PER_DELETE))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
