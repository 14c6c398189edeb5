"""What can be asked, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """SQL with its parameters, and how many rows are wanted at most."""

    sql: str
    parameters: Parameters | None
    rows_max: int


@dataclass(frozen=True, slots=True)
class KeyedQuestion:
    """Rows of one table by values of its columns."""

    table: str
    conditions: Mapping[str, Sequence[str]]
    rows_max: int

    @property
    def shape(self) -> "Shape":
        """All but the values: questions of one shape are answered by one statement."""
        counts = tuple((column, len(values)) for column, values in self.conditions.items())
        return self.table, counts

    @property
    def parameters(self) -> list[str]:
        return [value for values in self.conditions.values() for value in values]


Shape = tuple[str, tuple[tuple[str, int], ...]]
