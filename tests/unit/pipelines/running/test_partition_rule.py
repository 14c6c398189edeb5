"""Which rows a table cannot be partitioned by, as a rule that nobody declares."""

import pyarrow as pa
import pytest

from headrace.lake.quarantine import PARTITION
from headrace.pipelines.model import RowRule, Violation
from headrace.pipelines.running.partition_rule import Deletes, partition_rules

SCHEMA = pa.schema(
    [
        ("city", pa.string()),
        ("day", pa.date32()),
        ("a`t", pa.timestamp("us", "UTC")),
        ("seen", pa.timestamp("us")),
    ]
)
YEARS = "BETWEEN -262143 AND 262142, true)"


def test_dates_and_times_that_part_a_table_are_judged_together() -> None:
    (rule,) = partition_rules(SCHEMA, ("city", "day", "a`t"), SCHEMA.names)
    condition = f"ifnull(year(`day`) {YEARS} AND ifnull(year(`a``t`) {YEARS}"
    assert (rule.name, rule.rule) == (PARTITION, RowRule(condition))
    assert rule.on_violation is Violation.QUARANTINE


@pytest.mark.parametrize(
    ("by", "given"),
    [((), ("day",)), (("city",), ("city", "day")), (("day",), ("city",))],
    ids=["not partitioned", "by a text", "the flow has no such column"],
)
def test_nothing_is_judged_where_no_date_parts_the_rows(
    by: tuple[str, ...], given: tuple[str, ...]
) -> None:
    assert partition_rules(SCHEMA, by, given) == ()


def test_an_event_by_which_a_key_goes_needs_no_date_but_that_of_its_key() -> None:
    deletes = Deletes("_deleted", ("seen",))
    (rule,) = partition_rules(SCHEMA, ("day", "seen"), SCHEMA.names, deletes)
    day, seen = f"ifnull(year(`day`) {YEARS}", f"ifnull(year(`seen`) {YEARS}"
    assert rule.rule == RowRule(f"(`_deleted` OR {day}) AND {seen}")
