"""The jobs of `spark.tables.parcels` without Spark: the same tasks, one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.tables.parcels import Results, Side, Work, _SendTask, _unpacked

BUCKETS = 3


def sent(sides: Sequence[Side]) -> dict[int, list[pa.Table]]:
    """The tables of each bucket, one for each side, as a task would get them."""
    groups = [(n, group) for n, side in enumerate(sides) for group in side.groups()]
    task = _SendTask(tuple(sides), tuple(groups), BUCKETS)
    numbers = pa.record_batch({"id": pa.arange(0, len(groups))})
    parcels = list(task(iter([numbers])))
    if not parcels:
        return {}
    found = pa.Table.from_batches(parcels)
    schemas = [side.schema for side in sides]
    return {
        bucket: _unpacked(found.filter(pc.equal(found["bucket"], bucket)), schemas)
        for bucket in found["bucket"].unique().to_pylist()
    }


def work_by_key(_: object, sides: Sequence[Side], __: int, work: Work) -> dict[str, list[str]]:
    return _by_kind([one for tables in sent(sides).values() for one in work(tables)])


def work_by_group(
    _: object, groups: Sequence[Any], work: Callable[[Any], Results]
) -> dict[str, list[str]]:
    return _by_kind([one for group in groups for one in work(group)])


def _by_kind(results: Results) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, body in results:
        found.setdefault(kind, []).append(body)
    return found
