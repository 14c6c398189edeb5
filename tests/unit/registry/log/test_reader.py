"""Reading a topic to its end."""

from typing import NamedTuple

import pytest

from headrace.registry.log.reader import LogReader, Read
from headrace.registry.settings import RegistrySettings


class End(NamedTuple):
    offset: int


class Partitions:
    """Returns the end of the only partition."""

    def __init__(self, end: int) -> None:
        self._end = End(end)

    def offsets(self, topic: str, time: int) -> dict[int, End]:
        return {0: self._end}


class Told(NamedTuple):
    partitions: Partitions


class ScriptedReader(LogReader):
    """Receives answers without records, each with the next offset."""

    def __init__(self, end: int, leads_to: list[int]) -> None:
        super().__init__("127.0.0.1:1", RegistrySettings())
        self._admin = Told(Partitions(end))  # type: ignore[assignment]
        self._leads_to = iter(leads_to)
        self.fetches = 0

    def _fetch(self, wait_ms: int) -> Read:
        self.fetches += 1
        self._next_offset = next(self._leads_to)
        return Read((), self._next_offset)


def test_answers_without_records_that_lead_on_are_not_the_end() -> None:
    """Markers of transactions, or batches emptied by compaction."""
    reader = ScriptedReader(9, list(range(1, 10)))
    assert reader.load(lambda read: None) == 9


def test_an_end_that_was_deleted_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    reader = ScriptedReader(9, [5] * 100)
    assert reader.load(lambda read: None) == 5
    assert reader.fetches == 5
    (warning,) = caplog.records
    assert (vars(warning)["offset"], vars(warning)["end_offset"]) == (5, 9)
