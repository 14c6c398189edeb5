"""The description of side outputs for unreadable records, without Arrow and Parquet.

Reading a pipeline's folder and planning a source need these types only; `side_output_files` writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec

OPTION = "unreadable"
"""The source's option with a `SideOutput`; without it unreadable records are rows with an error."""

Spans = Mapping[str, Mapping[str, tuple[int, int]]]
"""By topic and partition: the first offset and the one after the last."""


class SideOutput(msgspec.Struct, frozen=True):
    """The destination of unreadable records."""

    notes: str
    """A folder for the notes of tasks, emptied before each batch."""
    place: str
    """The folder of the quarantine table."""
    table: str
    flow: str
    source: str = ""
    """The source that rejected a record; sources of one topic may have different schemas."""

    def to_option(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_option(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)


class Span(msgspec.Struct, frozen=True, array_like=True):
    """The records of a partition from `first` to before `end`."""

    topic: str
    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class UnreadableRecords:
    """Unreadable records; the columns are arrays of one length."""

    topic: Any
    partition: Any
    offset: Any
    timestamp: Any
    error: Any
    payload: Any

    @property
    def identity(self) -> tuple[Any, ...]:
        """The columns that are the same whenever a record is read."""
        return self.topic, self.partition, self.offset, self.payload
