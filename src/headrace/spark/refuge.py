"""Where tasks put records that cannot be read, and how they name those that they have looked at.

Apart from `unreadable.py`, which does it, because to read a pipeline's folder, and to read records,
these words are needed, and neither Arrow nor Parquet is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec

OPTION = "unreadable"
"""The source's option that holds a `Refuge`; without it such records are rows with an error."""

Spans = Mapping[str, Mapping[str, tuple[int, int]]]
"""For each topic and partition the first offset and the one after the last."""


class Refuge(msgspec.Struct, frozen=True):
    """Where tasks put what cannot be read, and under whose name."""

    notes: str
    """A folder for their notes; it is emptied before each batch."""
    place: str
    """The quarantine table's."""
    table: str
    flow: str
    source: str = ""
    """Whose tasks they are; sources of one topic may read it by different schemas."""

    def to_option(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_option(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)


class Span(msgspec.Struct, frozen=True, array_like=True):
    """The records of a partition from one offset up to before another."""

    topic: str
    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Some records that could not be read; the columns are arrays of one length."""

    topic: Any
    partition: Any
    offset: Any
    timestamp: Any
    error: Any
    payload: Any

    @property
    def identity(self) -> tuple[Any, ...]:
        """What is the same of a record whenever it is read."""
        return self.topic, self.partition, self.offset, self.payload
