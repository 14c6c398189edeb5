"""The freshness of tables, checked by the clock.

A batch is checked when it arrives. Most tables become stale because no batch arrives. So the flows'
reports have the newest times of their batches, which are regularly compared with the time of day.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.pipelines import model

_log = logging.getLogger(__name__)

Newest = Mapping[str, int]
"""For each expectation of a table the newest time of its rows, in milliseconds."""


@dataclass(slots=True)
class FreshnessWatch:
    """The stale tables, with the reasons."""

    expected: Mapping[str, tuple[model.Expectation, ...]]
    stale: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """The stale tables whose flows must not continue."""

    @classmethod
    def of(cls, datasets: Mapping[str, model.Dataset]) -> "FreshnessWatch":
        kinds = (model.StreamingTable, model.MaterializedView)
        tables = [one for one in datasets.values() if isinstance(one, kinds)]
        found = {
            table.name: tuple(e for e in table.expectations if isinstance(e.rule, model.Freshness))
            for table in tables
        }
        return cls({name: rules for name, rules in found.items() if rules})

    def check(self, newest: Mapping[str, Newest], now_ms: int, since_ms: int | None) -> None:
        """Check every table, and log changes once.

        After the start of a continuous run, `since_ms`, tables may be stale for the allowed age:
        the run must first read the records that arrived before it. A single pass has read
        everything, so it has no such time.
        """
        for table, rules in self.expected.items():
            broken = [
                (rule, problem)
                for rule in rules
                if (problem := _problem(rule, newest.get(table, {}), now_ms, since_ms))
            ]
            self._update(table, broken)

    def _update(self, table: str, broken: list[tuple[model.Expectation, str]]) -> None:
        was_stale = table in self.stale
        self.stale.pop(table, None)
        self.failed.pop(table, None)
        if not broken:
            if was_stale:
                _log.info("table fresh again", extra={"table": table})
            return
        fatal = [one for one in broken if one[0].on_violation is model.Violation.FAIL]
        rule, problem = (fatal or broken)[0]
        text = f"{table} breaks the expectation {rule.name!r}: {problem}"
        self.stale[table] = text
        if fatal:
            self.failed[table] = text
        elif not was_stale:
            _log.warning("table stale", extra={"table": table, "problem": text})


def _problem(
    expectation: model.Expectation, newest: Newest, now_ms: int, since_ms: int | None
) -> str | None:
    assert isinstance(expectation.rule, model.Freshness), "only freshness is watched"
    allowed_ms = expectation.rule.age_s_max * 1000
    if since_ms is not None and now_ms - since_ms <= allowed_ms:
        return None
    column, at_ms = expectation.rule.column, newest.get(expectation.name)
    if at_ms is None:
        return f"no row with a value of {column} has arrived yet"
    age_ms = now_ms - at_ms
    return f"the newest {column} is {age_ms / 1000:.0f} s old" if age_ms > allowed_ms else None
