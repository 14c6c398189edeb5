"""Bounds of the keys of a batch, to skip files by their bounds in the log.

Only integers and dates are used: all writers record exact bounds for them, while strings may be cut
and times rounded. A column with a null, or of another type, skips no file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

Span = tuple[int, int]
"""The least and the greatest value; dates as days since 1970."""
FileBounds = Sequence[Mapping[str, Span]]
"""The known spans of columns for each file."""


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The spans of the comparable key columns."""

    spans: Mapping[str, Span | None]
    """None before the first row."""

    @classmethod
    def of(cls, schema: pa.Schema) -> Self:
        return cls({field.name: None for field in schema if is_bounded(field.type)})

    @classmethod
    def all_of(cls, documents: Sequence[Mapping[str, Sequence[int]]]) -> Self:
        """Combine the documents of several tasks; a column needs the bounds of all of them."""
        if not documents:
            return cls({})
        names = set.intersection(*(set(document) for document in documents))
        spans = {name: [document[name] for document in documents] for name in names}
        return cls(
            {name: (min(s[0] for s in of), max(s[1] for s in of)) for name, of in spans.items()}
        )

    def with_rows(self, rows: Any) -> "KeyBounds":
        """Extend the bounds by rows; a null removes the bounds of its column."""
        spans: dict[str, Span | None] = {}
        for name, span in self.spans.items():
            column = rows.column(name)
            if not len(column):
                spans[name] = span
            elif not column.null_count:
                found = pc.min_max(numbers(column))
                low, high = found["min"].as_py(), found["max"].as_py()
                spans[name] = (
                    (low, high) if span is None else (min(low, span[0]), max(high, span[1]))
                )
        return KeyBounds(spans)

    def document(self) -> dict[str, Span]:
        """Return the bounds as a task reports them."""
        return {name: span for name, span in self.spans.items() if span is not None}

    def numbers_of(self, files: FileBounds) -> list[int]:
        """Return the numbers of the files that may have a key within these bounds."""
        known = self.document()
        return [
            number
            for number, spans in enumerate(files)
            if all(
                spans[name][0] <= high and low <= spans[name][1]
                for name, (low, high) in known.items()
                if name in spans
            )
        ]


def is_bounded(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_date(of))


def numbers(column: Any) -> Any:
    """Convert dates to days, because Python's calendar is shorter than Arrow's."""
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    return column
