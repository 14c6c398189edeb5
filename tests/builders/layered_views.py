"""A merged view's two layers without Spark: each step that is atomic, in any order, by a seed.

The steps are those of the runner, over its own functions for the seam; only the aggregates are
computed here. A reader of tables may be interrupted between any two looks at them.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.merged_views import (
    COMMIT_VERSION,
    covered_version,
    forget_covered,
    reached_version,
)
from headrace.lake.reading import read_batches
from headrace.lake.snapshot import Snapshot
from tests.builders.lakes import appended, written

Record = tuple[int, str, int, int]
"""An id, a page, the minute at which it was looked at, and its size."""
Totals = dict[tuple[str, int], tuple[int, int, int]]
"""For each page and minute how many there were, their size, and that of the largest."""

INPUT = "raw.hits"
COLUMNS = ("id", "page", "minute", "size")
VIEW = MergedViewEntry(
    "refined.pages",
    ("page", "minute"),
    {"hits": "sum", "size": "sum", "largest": "max"},
    "refined.pages__batch",
    "refined.pages__speed",
)
_LATE_MINUTES = 600
_INTERRUPTED, _STEPS_MAX = 0.25, 6
"""How often someone who looks at a table is interrupted, and for how many steps of others."""


def totals(records: Iterable[Record]) -> Totals:
    """The view by brute force: of each id the first, wherever and however late it came."""
    once: dict[int, Record] = {}
    for record in records:
        once.setdefault(record[0], record)
    hits: Counter[tuple[str, int]] = Counter()
    size: Counter[tuple[str, int]] = Counter()
    largest: dict[tuple[str, int], int] = {}
    for _, page, minute, count in once.values():
        key = page, minute
        hits[key] += 1
        size[key] += count
        largest[key] = max(count, largest.get(key, 0))
    return {key: (hits[key], size[key], largest[key]) for key in hits}


def random_records(rng: random.Random, sent: list[Record], now: int) -> list[Record]:
    """Some new records: some are late by hours, some repeat the ids of earlier records.

    A repeated id may have other content, as from a sender that corrects a record and resends it.
    """
    first = len({record[0] for record in sent})
    fresh = [
        (
            first + number,
            f"/{rng.randrange(3)}",
            now - (rng.randrange(1, _LATE_MINUTES) if rng.random() < 0.3 else 0),
            rng.randrange(1, 500),
        )
        for number in range(rng.randrange(1, 6))
    ]
    again = rng.sample(sent, min(len(sent), rng.randrange(4)))
    again += rng.sample(fresh, len(fresh) // 3)
    mended = [(one, f"/{rng.randrange(3)}", minute, size + 1) for one, _, minute, size in again]
    mixed = fresh + [rng.choice(pair) for pair in zip(again, mended, strict=True)]
    rng.shuffle(mixed)
    return mixed


class Layers:
    """The input, the two layers, and what each of them is just about."""

    def __init__(self, root: Path, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.rng = random.Random(seed)
        self.lake = Lake(root)
        columns = [("id", pa.int64()), ("page", pa.string()), ("minute", pa.int64())]
        merged = [("hits", pa.int64()), ("size", pa.int64()), ("largest", pa.int64())]
        self.input = self.lake.create(INPUT, pa.schema([*columns, ("size", pa.int64())]))
        self.batch = self.lake.create(VIEW.batch, pa.schema([*columns[1:], *merged]))
        self.speed = self.lake.create(
            VIEW.speed, pa.schema([*columns[1:], *merged, (COMMIT_VERSION, pa.int64())])
        )
        self.lake.put_view(VIEW.name, VIEW)
        self.sent: list[Record] = []
        self.commits: dict[int, list[Record]] = {}
        self._parts = self._runs = 0
        self._planned: tuple[int, int] | None = None
        self._seen: set[int] = set()
        self._computing: Iterator[None] | None = None
        self._is_computing = False
        self._is_interruptible = True
        patch.setattr(os, "fsync", lambda _: None)  # No machine crashes here.
        self._patch_looks(patch)

    def step(self) -> None:
        """Let someone take one step."""
        steps: list[Callable[[], None]] = [
            *[self.grow] * 3,
            *[self.step_of_speed] * 4,
            *[self.step_of_batch] * 5,
        ]
        if self.rng.random() < 0.05:
            steps = [self.optimize]
        self.rng.choice(steps)()

    def grow(self) -> None:
        """Records come."""
        with self._alone():
            more = random_records(self.rng, self.sent, 1_000 + len(self.commits))
            rows = [dict(zip(COLUMNS, record, strict=True)) for record in more]
            self.commits[appended(self.input, rows)] = more
            self.sent += more

    def step_of_speed(self) -> None:
        """Plan the next micro-batch, or write the one that is planned, at times twice."""
        with self._alone():
            reached = reached_version(self.speed, INPUT)
            if self._planned is None:
                newest = max(self.commits, default=0)
                if newest > reached:
                    self._planned = reached, self.rng.randrange(reached + 1, newest + 1)
                return
            self._write_part(*self._planned)
            if self.rng.random() < 0.8:  # Otherwise the process died before it noted the part.
                self._seen |= {one[0] for one in self._between(*self._planned)}
                self._planned = None
                self._parts += 1

    def step_of_batch(self) -> None:
        """Go on with the run of the batch layer that is under way, or begin one."""
        if self._is_computing:
            return  # It was interrupted between two looks, and there is one at a time.
        self._is_computing = True
        self._computing = self._computing or self._run_of_batch()
        if next(self._computing, "over") == "over" or self.rng.random() < 0.05:
            self._computing = None  # It is through, or was killed.
        self._is_computing = False

    def optimize(self) -> None:
        with self._alone():
            self.lake.optimize(self.rng.choice(self.lake.names()))

    def covered(self, batch_version: int, speed_version: int) -> list[Record]:
        """The records that an answer from these versions of the layers claims to cover."""
        covered = covered_version(self.batch, batch_version)
        return self._between(-1, max(covered, reached_version(self.speed, INPUT, speed_version)))

    def _run_of_batch(self) -> Iterator[None]:
        """As `views.ComputedView` does it, with the moments at which others may come between."""
        version = reached_version(self.speed, INPUT)
        yield
        place, schema = self.input.place, self.input.schema
        batches = (
            batch
            for file in self.input.files_as_arrived(version)
            for batch in read_batches(place, file, schema, ())
        )
        rows = [row for batch in batches for row in batch.to_pylist()]
        records = [tuple(row[name] for name in COLUMNS) for row in rows]
        files = written(self.batch, _rows(totals(records)))
        yield
        lineage = Lineage(inputs={INPUT: (0, version)})
        with self._alone():
            self.batch.replace(files, Token("batch", self._runs), lineage)
            self._runs += 1
        yield
        with self._alone():
            forget_covered(self.speed, version)

    def _write_part(self, after: int, to: int) -> None:
        new = [one for one in self._between(after, to) if one[0] not in self._seen]
        rows = [{**row, COMMIT_VERSION: to} for row in _rows(totals(new))]
        token, lineage = Token("speed", self._parts), Lineage(inputs={INPUT: (after, to)})
        if not self.speed.has(token):
            self.speed.append(written(self.speed, rows), token, lineage)

    def _between(self, after: int, to: int) -> list[Record]:
        return [one for v in self.commits if after < v <= to for one in self.commits[v]]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Disable interruptions, for steps that tables do under a lock."""
        before, self._is_interruptible = self._is_interruptible, False
        try:
            yield
        finally:
            self._is_interruptible = before

    def _patch_looks(self, patch: pytest.MonkeyPatch) -> None:
        """Let others take steps before anyone looks which version a table has."""
        follow = Snapshot.follow

        def interrupted(head: Snapshot) -> None:
            if self._is_interruptible and self.rng.random() < _INTERRUPTED:
                with self._alone():
                    for _ in range(self.rng.randrange(1, _STEPS_MAX + 1)):
                        self.step()
            follow(head)

        patch.setattr(Snapshot, "follow", interrupted)


def _rows(found: Totals) -> list[dict[str, object]]:
    names = ("hits", "size", "largest")
    return [
        {"page": page, "minute": minute, **dict(zip(names, merged, strict=True))}
        for (page, minute), merged in found.items()
    ]


def as_totals(rows: pa.Table) -> Totals:
    """A reader's rows in the form of the brute-force totals."""
    return {
        (row["page"], row["minute"]): (row["hits"], row["size"], row["largest"])
        for row in rows.to_pylist()
    }
