"""Whether tables are as fresh as is expected of them, looked at by the clock.

A batch is judged when it comes. That says nothing of a table that no batch comes for, which is how
most tables become stale; so the newest times that batches had are kept in the flows' reports, and
compared with the time of day from time to time.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.pipelines.model import (
    Dataset,
    Expectation,
    Freshness,
    MaterializedView,
    StreamingTable,
    Violation,
)

_log = logging.getLogger(__name__)

Newest = Mapping[str, int]
"""For each expectation of a table the newest time that its rows have, in milliseconds."""


@dataclass(slots=True)
class FreshnessWatch:
    """Which tables are stale, and what was said of it."""

    expected: Mapping[str, tuple[Expectation, ...]]
    stale: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Those of them whose flows must not go on."""

    @classmethod
    def of(cls, datasets: Mapping[str, Dataset]) -> "FreshnessWatch":
        kinds = (StreamingTable, MaterializedView)
        tables = [one for one in datasets.values() if isinstance(one, kinds)]
        found = {
            table.name: tuple(e for e in table.expectations if isinstance(e.rule, Freshness))
            for table in tables
        }
        return cls({name: rules for name, rules in found.items() if rules})

    def look(self, newest: Mapping[str, Newest], now_ms: int, since_ms: int | None) -> None:
        """Judge every table; who became stale or fresh is said once.

        A run that goes on has the time that a rule allows from its start on, `since_ms`: what has
        come while nothing ran is yet to be read. A single pass has read all, so it has none.
        """
        for table, rules in self.expected.items():
            broken = [
                (rule, problem)
                for rule in rules
                if (problem := _problem(rule, newest.get(table, {}), now_ms, since_ms))
            ]
            self._note(table, broken)

    def _note(self, table: str, broken: list[tuple[Expectation, str]]) -> None:
        was_stale = table in self.stale
        self.stale.pop(table, None)
        self.failed.pop(table, None)
        if not broken:
            if was_stale:
                _log.info("%s is fresh again", table)
            return
        fatal = [one for one in broken if one[0].on_violation is Violation.FAIL]
        rule, problem = (fatal or broken)[0]
        text = f"{table} breaks the expectation {rule.name!r}: {problem}"
        self.stale[table] = text
        if fatal:
            self.failed[table] = text
        elif not was_stale:
            _log.warning("%s", text)


def _problem(
    expectation: Expectation, newest: Newest, now_ms: int, since_ms: int | None
) -> str | None:
    assert isinstance(expectation.rule, Freshness), "others are not watched"
    allowed_ms = expectation.rule.age_s_max * 1000
    if since_ms is not None and now_ms - since_ms <= allowed_ms:
        return None
    column, at_ms = expectation.rule.column, newest.get(expectation.name)
    if at_ms is None:
        return f"no row with a value of {column} has come yet"
    age_ms = now_ms - at_ms
    return f"the newest {column} is {age_ms / 1000:.0f} s old" if age_ms > allowed_ms else None
