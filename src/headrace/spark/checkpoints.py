"""The planned batches of a streaming query and their offsets, from its checkpoint.

Spark writes `offsets/N` before it runs batch N and `commits/N` after it. An entry of `offsets` has
a version line, a line of metadata, and one line per source with the *end* of the batch. A batch
begins at the end of the one before, or at the configured start of the source.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError

Ends = Mapping[str, Any]
"""A source's position: `{"topic": {"0": 12}}` or `{"table": "raw.orders", "version": 12}`."""

_HEAD_LINES = 2
_NO_OFFSET = "-"


class CheckpointDamaged(HeadraceError):
    """A file of a checkpoint cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The input of a batch: ranges of offsets by topic, and of versions by table."""

    offsets: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    inputs: dict[str, tuple[int, int]] = field(default_factory=dict)

    def ends(self) -> dict[str, dict[str, int]]:
        """Return the end of the batch in each partition."""
        return {
            topic: {partition: to for partition, (_, to) in partitions.items()}
            for topic, partitions in self.offsets.items()
        }


def newest_commit(checkpoint: Path) -> int:
    """Return the last committed batch, or -1."""
    return max(_numbered(checkpoint / "commits"), default=-1)


def newest_plan(checkpoint: Path) -> int:
    """Return the last planned batch, or -1."""
    return max(_numbered(checkpoint / "offsets"), default=-1)


def has_state(checkpoint: Path) -> bool:
    """Return whether the query has state: for a watermark, a join, or deduplication."""
    return (checkpoint / "state").is_dir()


def ends(checkpoint: Path, batch: int) -> list[Ends]:
    """Return the position of each source at the end of a batch, in the query's order."""
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[_HEAD_LINES:]
        return [{} if line == _NO_OFFSET else json.loads(line) for line in lines if line]
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise CheckpointDamaged(f"{path} cannot be read: {error}") from error


def ranges(checkpoint: Path, batch: int, starts: Ends | None = None) -> Ranges:
    """Return the input of a batch; `starts` are the first offsets, for the query's first batch.

    With several readers of a partition or table the furthest counts, so that each record belongs
    to the batch that read it first.
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
    """Return, by table id, the version that was read and will not be read again.

    It is -1 while a table is read for the first time, because all files of a version are needed
    then. Tables without a planned read are left out.
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
    """Return the furthest position in each partition and table."""
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
