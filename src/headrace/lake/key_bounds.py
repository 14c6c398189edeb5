"""Between which values the keys of a batch are, and which files the log's bounds rule out.

Only whole numbers and dates are looked at: of these every writer's bounds in the log are exact,
where texts may be cut off and times rounded. A column that has a null, or another type, rules
nothing out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

Span = tuple[int, int]
"""The least and the greatest value; dates as the number of their day."""
FileBounds = Sequence[Mapping[str, Span]]
"""For each file the spans of columns, where the log tells them."""


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The spans of key columns, of those that can be compared."""

    spans: Mapping[str, Span | None]
    """None as long as no row was seen."""

    @classmethod
    def of(cls, schema: pa.Schema) -> Self:
        return cls({field.name: None for field in schema if is_bounded(field.type)})

    @classmethod
    def all_of(cls, documents: Sequence[Mapping[str, Sequence[int]]]) -> Self:
        """What several tasks have told, as one; a column that one cannot tell, none can."""
        if not documents:
            return cls({})
        names = set.intersection(*(set(document) for document in documents))
        spans = {name: [document[name] for document in documents] for name in names}
        return cls(
            {name: (min(s[0] for s in of), max(s[1] for s in of)) for name, of in spans.items()}
        )

    def with_rows(self, rows: Any) -> "KeyBounds":
        """The bounds with these rows too; a column with a null is not bounded any more."""
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
        """What a task tells of its rows."""
        return {name: span for name, span in self.spans.items() if span is not None}

    def numbers_of(self, files: FileBounds) -> list[int]:
        """The files that may have a key within these bounds, by number."""
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
    """Dates as numbers of days: Python's calendar does not reach as far as Arrow's."""
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    return column
