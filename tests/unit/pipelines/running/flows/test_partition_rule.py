"""The undeclared rule about rows by which a table cannot be partitioned."""

import pyarrow as pa
import pytest

from headrace.lake.quarantine import PARTITION
from headrace.pipelines.model import RowRule, Violation
from headrace.pipelines.running.flows.partition_rule import Deletes, partition_rules

SCHEMA = pa.schema(
    [
        ("city", pa.string()),
        ("day", pa.date32()),
        ("a`t", pa.timestamp("us", "UTC")),
        ("seen", pa.timestamp("us")),
    ]
)
YEARS = "BETWEEN -262143 AND 262142, true)"


def test_dates_and_times_that_partition_a_table_are_checked_together() -> None:
    (rule,) = partition_rules(SCHEMA, ("city", "day", "a`t"), SCHEMA.names)
    condition = f"ifnull(year(`day`) {YEARS} AND ifnull(year(`a``t`) {YEARS}"
    assert (rule.name, rule.rule) == (PARTITION, RowRule(condition))
    assert rule.on_violation is Violation.QUARANTINE


@pytest.mark.parametrize(
    ("by", "given"),
    [((), ("day",)), (("city",), ("city", "day")), (("day",), ("city",))],
    ids=["not partitioned", "by a text", "the flow has no such column"],
)
def test_without_a_partition_by_date_there_are_no_rules(
    by: tuple[str, ...], given: tuple[str, ...]
) -> None:
    assert partition_rules(SCHEMA, by, given) == ()


def test_a_delete_event_needs_only_the_date_of_its_key() -> None:
    deletes = Deletes("_deleted", ("seen",))
    (rule,) = partition_rules(SCHEMA, ("day", "seen"), SCHEMA.names, deletes)
    day, seen = f"ifnull(year(`day`) {YEARS}", f"ifnull(year(`seen`) {YEARS}"
    assert rule.rule == RowRule(f"(`_deleted` OR {day}) AND {seen}")
