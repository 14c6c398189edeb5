"""Which names a dataset may have."""

import pytest

from headrace.pipelines.declaring.names import (
    complaint,
    flow_complaint,
    quarantine_of,
    refusing_table,
)
from headrace.pipelines.model import ZONES


def test_a_table_lives_in_a_zone() -> None:
    assert complaint("staging.orders", ZONES, needs_zone=True) is None
    assert "has no zone; name it raw.orders" in (complaint("orders", ZONES, needs_zone=True) or "")


def test_a_view_that_is_not_stored_needs_no_zone() -> None:
    assert complaint("recent", ZONES, needs_zone=False) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stagin.orders", "did you mean staging?"),
        ("sources.orders", "is reserved"),
        ("quarantine.orders", "is reserved"),
        ("a.b.c", "too many parts"),
        ("Staging.Orders", "lower-case"),
        ("staging.1", "lower-case"),
        ("staging.", "lower-case"),
        ("staging.or-ders", "lower-case"),
        ("raw." + "x" * 300, "too long"),
    ],
)
def test_invalid_names_are_refused_with_advice(name: str, words: str) -> None:
    assert words in (complaint(name, ZONES, needs_zone=True) or "")


def test_names_of_hidden_tables_are_reserved() -> None:
    """Such as a quarantine, whose name would else belong to two tables."""
    assert quarantine_of("staging.orders") == "quarantine.staging__orders"
    assert refusing_table("quarantine.staging__orders") == "staging.orders"
    for name in ("a__b.c", "a.b__c", "staging.orders__changes"):
        assert "two underscores" in (
            complaint(name, ("a__b", "a", "staging"), needs_zone=True) or ""
        )


def test_a_flow_is_named_like_a_folder() -> None:
    assert flow_complaint("staging.orders") is None
    assert flow_complaint("../x") is not None
