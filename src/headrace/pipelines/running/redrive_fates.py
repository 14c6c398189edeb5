"""What becomes of each row that is redriven, and how those that are done with are named in SQL."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Self, TypeVar

import pyarrow as pa

from headrace.lake.quarantine import QUARANTINED_AT, TOLD_BY, UNREADABLE
from headrace.pipelines.running.kept_records import Place

LOST = "their records are no longer there to be read, and their bytes were not kept"
REMADE = (
    "their topic was deleted or made again, or that cannot be ruled out, so that its offsets may"
    " mean other records; and their bytes were not kept"
)
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
_Kind = tuple[bool, bool]
"""Of a row whether it could not be read, and whether its bytes were kept: what decides its fate."""


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
    remade: frozenset[str] = frozenset()
    """Topics that may have other records in the place of these: only bytes that were kept count."""
    untold: frozenset[str] = frozenset()
    """Topics of which the flow's input may have two records of one offset, side by side."""

    def after(self, wanted: Set[Place], found: Set[Place] | None) -> "Plan":
        """The plan when it is known which of the wanted records are there.

        None where it cannot be told which rows the records make.
        """
        if found is None:
            return Plan(is_anew=False)
        return replace(self, lost=frozenset(wanted - found))

    @classmethod
    def from_json(cls, noted: dict[str, Any]) -> Self:
        lost, stored, otherwise = (
            frozenset((t, p, o) for t, p, o in noted.get(name, ()))
            for name in ("lost", "stored", "read_otherwise")
        )
        remade, untold = (frozenset(noted.get(name, ())) for name in ("remade", "untold"))
        return cls(noted["is_anew"], lost, stored, otherwise, remade, untold)

    def to_json(self) -> dict[str, Any]:
        return {
            "is_anew": self.is_anew,
            "lost": sorted(self.lost),
            "stored": sorted(self.stored),
            "read_otherwise": sorted(self.read_otherwise),
            "remade": sorted(self.remade),
            "untold": sorted(self.untold),
        }

    def is_made_anew(self, place: Place | None, *, is_unreadable: bool) -> bool:
        """Whether a row is made anew of its record.

        What could not be read has no other rows, whatever other flows have made of its record;
        unless another source of the flow could read it.
        """
        if place is None or not self.is_anew or place in self.read_otherwise:
            return False
        if place[0] in self.untold:
            return False
        return is_unreadable or place not in self.stored


@dataclass(slots=True)
class Fates:
    """For each row whether it is done with, and whether it is judged as it was."""

    is_taken: list[bool] = field(default_factory=list)
    as_they_were: list[bool] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def taken(self) -> int:
        return sum(self.is_taken)


def made_anew(rows: pa.Table, plan: Plan) -> list[bool]:
    """For each row of a flow whether it is made anew of its record."""
    told = zip(places_of(rows), _kinds(rows), strict=True)
    return [plan.is_made_anew(place, is_unreadable=kind[0]) for place, kind in told]


def fates_of(rows: pa.Table, plan: Plan) -> Fates:
    """What becomes of each row of a flow.

    A row of a payload that could not be decoded is nothing but nulls: as it is it would pass where
    it should not.
    """
    fates = Fates()
    told = zip(places_of(rows), _kinds(rows), made_anew(rows, plan), strict=True)
    for place, (is_unreadable, has_bytes), is_anew in told:
        reason = None
        if is_anew and place in plan.lost:
            reason = LOST
        elif is_anew and place and place[0] in plan.remade and not has_bytes:
            reason = REMADE
        elif not is_anew and is_unreadable:
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
    """Runs of offsets whose rows are taken: all of them, or all of some kinds."""
    fates: dict[Place, dict[_Kind, bool]] = defaultdict(dict)
    for place, kind, is_one in zip(places_of(rows), _kinds(rows), is_taken, strict=True):
        if place is not None:
            assert fates[place].setdefault(kind, is_one) == is_one, "a kind has one fate"
    chosen = {place: _chosen(kinds) for place, kinds in fates.items() if any(kinds.values())}
    for (topic, partition, which), run in groupby(
        sorted(fates), key=lambda place: (place[0], place[1], chosen.get(place))
    ):
        offsets = [place[2] for place in run]
        if which is not None:
            yield (
                f'(topic = {_quoted(topic)} AND "partition" = {partition}'
                f' AND "offset" BETWEEN {offsets[0]} AND {offsets[-1]}{which})'
            )


def _chosen(kinds: Mapping[_Kind, bool]) -> str:
    """What tells those rows of a place that are taken from those that are left, if any are."""
    if all(kinds.values()):
        return ""
    texts = (
        f"(rule {'=' if is_unreadable else '<>'} '{UNREADABLE}'"
        f" AND payload IS {'NOT ' if has_bytes else ''}NULL)"
        for (is_unreadable, has_bytes), is_one in sorted(kinds.items())
        if is_one
    )
    return f" AND ({' OR '.join(texts)})"


def _kinds(rows: pa.Table) -> Iterator[_Kind]:
    rules, bytes_kept = rows["rule"].to_pylist(), rows["payload"].is_valid().to_pylist()
    return ((rule == UNREADABLE, is_kept) for rule, is_kept in zip(rules, bytes_kept, strict=True))


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
