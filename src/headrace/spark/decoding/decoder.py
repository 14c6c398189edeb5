"""What a decoder of payloads is: columns by a schema, and why a payload has none."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Decoded:
    """A block of payloads as columns.

    `errors` is null where all is well; a bad payload has nulls in all columns and says why here.
    A payload that is null has nulls and no error.
    """

    columns: Any
    errors: Any


class Decoder(Protocol):
    """Can be pickled: what it needs in a worker it makes there."""

    @property
    def schema(self) -> Any:
        """The Arrow schema of the columns, in types that Spark reads; all may be null."""
        ...

    def decode(self, payloads: Any) -> Decoded:
        """Columns of a block of payloads, which is an Arrow array of binary values."""
        ...


def batch_of(arrays: list[Any], schema: Any, count: int) -> Any:
    """A record batch that has its rows even if it has no columns."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
