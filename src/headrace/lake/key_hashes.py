"""Hashes of the keys of a batch, which preselect the rows of a table at 8 bytes a key.

A hash collision only passes a row too many: a merge compares the keys themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import key_names, numbered, query

_T = TypeVar("_T")


def key_hashes(rows: Any, keys: Sequence[str]) -> pa.Array:
    """Hash the key of each row; the same on all machines for equal keys of equal types."""
    found = query(
        f"SELECT hash({key_names(keys)}) AS hash FROM rows ORDER BY position",
        {"rows": numbered(rows, keys)},
    )
    hashes: pa.Array = found["hash"].combine_chunks()
    return hashes


def by_bucket(rows: Any, keys: Sequence[str], buckets: int) -> Iterator[tuple[int, Any]]:
    """Split rows into buckets by the hash of their key, keeping their order."""
    found = query(
        f"""SELECT (hash({key_names(keys)}) % {buckets})::INTEGER AS bucket, position
        FROM rows ORDER BY ALL""",
        {"rows": numbered(rows, keys)},
    )
    ordered = rows.take(found["position"].combine_chunks())
    counts = found["bucket"].combine_chunks().value_counts()
    first = 0
    for count in counts:
        size = count["counts"].as_py()
        yield count["values"].as_py(), ordered.slice(first, size)
        first += size


@dataclass(frozen=True, slots=True)
class KeyHashes:
    """The distinct hashes of the keys of a batch."""

    keys: tuple[str, ...]
    values: Any
    """An Arrow array."""

    @classmethod
    def of(cls, batches: Iterable[Any], keys: Sequence[str]) -> "KeyHashes":
        """Hash the keys of record batches or tables, one after the other."""
        hashes = [key_hashes(batch, keys).unique() for batch in batches]
        return cls(tuple(keys), pa.chunked_array(hashes, pa.uint64()).unique())

    def looked_up(self, parts: Iterable[tuple[_T, Iterable[Any]]]) -> Iterator[tuple[_T, pa.Array]]:
        """Yield, for each named part, a mask of the rows whose key may be in the batch.

        Arrow rebuilds the set of hashes for each lookup. So parts are looked up together until they
        have as many rows as the set has keys; otherwise a table of many small files would cost
        their number times the size of the batch.
        """
        gathered: list[tuple[_T, list[pa.Array]]] = []
        rows = 0
        for name, batches in parts:
            hashes = [key_hashes(batch, self.keys) for batch in batches]
            gathered.append((name, hashes))
            rows += sum(map(len, hashes))
            if rows >= len(self.values):
                yield from self._together(gathered)
                gathered, rows = [], 0
        if gathered:
            yield from self._together(gathered)

    def _together(
        self, gathered: Sequence[tuple[_T, Sequence[pa.Array]]]
    ) -> Iterator[tuple[_T, pa.Array]]:
        chunks = [chunk for _, hashes in gathered for chunk in hashes]
        found = pc.is_in(pa.chunked_array(chunks, pa.uint64()), value_set=self.values)
        masks = found.combine_chunks()
        first = 0
        for name, hashes in gathered:
            size = sum(map(len, hashes))
            yield name, masks.slice(first, size)
            first += size
