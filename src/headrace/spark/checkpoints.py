"""What a streaming query's checkpoint says: which batches are planned, and over which offsets.

Spark writes `offsets/N` before it runs batch N and `commits/N` after it. An entry of `offsets` has
a version line, a line of metadata and one line per source with where the batch *ends*; it begins
where the batch before ended, or where the source was told to start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError

Ends = Mapping[str, Any]
"""Where a source stands: `{"topic": {"0": 12}}`, or `{"table": "raw.orders", "version": 12}`."""

_HEAD_LINES = 2
_NO_OFFSET = "-"


class CheckpointDamaged(HeadraceError):
    """A file of a checkpoint is not what Spark writes."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """What one batch read: offsets of topics, versions of tables, each from and to."""

    offsets: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    inputs: dict[str, tuple[int, int]] = field(default_factory=dict)

    def ends(self) -> dict[str, dict[str, int]]:
        """Where the batch ends in each partition of its topics."""
        return {
            topic: {partition: to for partition, (_, to) in partitions.items()}
            for topic, partitions in self.offsets.items()
        }


def newest_commit(checkpoint: Path) -> int:
    """The last batch that Spark knows to be done; -1 if there is none."""
    return max(_numbered(checkpoint / "commits"), default=-1)


def newest_plan(checkpoint: Path) -> int:
    """The last batch that was planned; -1 if there is none."""
    return max(_numbered(checkpoint / "offsets"), default=-1)


def has_state(checkpoint: Path) -> bool:
    """Whether the query remembers rows from batch to batch: for a watermark, a join, once each."""
    return (checkpoint / "state").is_dir()


def ends(checkpoint: Path, batch: int) -> list[Ends]:
    """Where each source of the query stands at the end of a batch, in the query's order."""
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[_HEAD_LINES:]
        return [{} if line == _NO_OFFSET else json.loads(line) for line in lines if line]
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise CheckpointDamaged(f"{path} cannot be read: {error}") from error


def ranges(checkpoint: Path, batch: int, starts: Ends | None = None) -> Ranges:
    """What a batch reads; `starts` is where its topics began, for the query's first batch.

    Of several readers of a place the one that is furthest counts, so that every record is of one
    batch: that in which it was read first.
    """
    before = _positions(ends(checkpoint, batch - 1) if batch else [starts or {}])
    after = _positions(ends(checkpoint, batch))
    found = Ranges()
    for (kind, name, partition), to in after.items():
        origin = before.get((kind, name, partition), 0)
        if kind == "table":
            found.inputs[name] = (origin, to)
        else:
            found.offsets.setdefault(name, {})[partition] = (origin, to)
    return found


def tables_read(checkpoint: Path) -> dict[str, int]:
    """Up to which version each table was read for good: that will not be asked for again.

    Tables go by their ids, as another generation of the same name has versions of its own. It is -1
    while a table is read for the first time, as all files of a version are needed then. Of a table
    that is not even planned to be read, nothing is said.
    """
    committed = newest_commit(checkpoint)
    found: dict[str, int] = {}
    for source in ends(checkpoint, committed if committed >= 0 else newest_plan(checkpoint)):
        if isinstance(source.get("table"), str):
            is_first = committed < 0 or source.get("snapshot") is not None
            version, table_id = -1 if is_first else int(source["version"]), str(source.get("id"))
            found[table_id] = min(version, found.get(table_id, version))
    return found


def _positions(sources: list[Ends]) -> dict[tuple[str, str, str], int]:
    """Every place that is read, with the furthest position in it."""
    found: dict[tuple[str, str, str], int] = {}
    for source in sources:
        if isinstance(source.get("table"), str):
            place, at = ("table", source["table"], ""), int(source["version"])
            found[place] = max(found.get(place, at), at)
            continue
        for topic, partitions in source.items():
            if isinstance(partitions, dict):
                for partition, offset in partitions.items():
                    place, at = ("topic", topic, str(partition)), int(offset)
                    found[place] = max(found.get(place, at), at)
    return found


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return [int(path.name) for path in directory.iterdir() if path.name.isdigit()]
