"""The keys of a batch as hashes: which rows of a table may have one of them, at 8 bytes a key.

A hash that two keys share lets a row through that need not be looked at, which costs a little and
harms nothing: who merges compares the keys themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import key_names, numbered, query


def key_hashes(rows: Any, keys: Sequence[str]) -> pa.Array:
    """A hash for each row, the same for equal keys of equal types wherever it is computed."""
    found = query(
        f"SELECT hash({key_names(keys)}) AS hash FROM rows ORDER BY position",
        {"rows": numbered(rows, keys)},
    )
    hashes: pa.Array = found["hash"].combine_chunks()
    return hashes


def by_bucket(rows: Any, keys: Sequence[str], buckets: int) -> Iterator[tuple[int, Any]]:
    """Part rows by the hash of their key into buckets, each with its rows in their order."""
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
    """The keys of a batch."""

    keys: tuple[str, ...]
    values: Any
    """An Arrow array, each hash once."""

    @classmethod
    def of(cls, batches: Iterable[Any], keys: Sequence[str]) -> "KeyHashes":
        """Of record batches or tables, taken one after the other."""
        hashes = [key_hashes(batch, keys).unique() for batch in batches]
        return cls(tuple(keys), pa.chunked_array(hashes, pa.uint64()).unique())

    def may_have(self, batches: Iterable[Any]) -> pa.Array:
        """For each row of these batches whether the batch of the keys may have its key.

        All are looked up at once: Arrow prepares the set anew for each call.
        """
        hashes = [key_hashes(batch, self.keys) for batch in batches]
        found = pc.is_in(pa.chunked_array(hashes, pa.uint64()), value_set=self.values)
        return found.combine_chunks()
