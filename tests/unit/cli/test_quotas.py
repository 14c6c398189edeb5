"""Owners and values of `headrace quotas`, from options."""

import click
import pytest

from headrace.cli.quotas import (
    EntityOptions,
    entity_text,
    quota_names,
    quota_values,
    required_entity,
    value_text,
)


def test_an_owner_may_have_two_parts_and_defaults() -> None:
    """QUO-2: by user, by client id, by both, and defaults."""
    owner = EntityOptions(user="ada", default_client_id=True).entity
    assert owner == {"user": "ada", "client-id": None}
    assert entity_text(owner) == "user ada, client-id (default)"


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (EntityOptions(), "name the owner"),
        (EntityOptions(user="ada", default_user=True), "exclude each other"),
        (EntityOptions(ip="10.0.0.7", user="ada"), "no user and client id"),
    ],
)
def test_an_invalid_owner_is_rejected(options: EntityOptions, reported: str) -> None:
    with pytest.raises(click.UsageError, match=reported):
        required_entity(options)


def test_rates_of_bytes_may_have_a_unit() -> None:
    given = (("producer_byte_rate", "1MB"), ("request_percentage", "12.5"))
    assert quota_values(given) == {"producer_byte_rate": 1_000_000.0, "request_percentage": 12.5}


@pytest.mark.parametrize("text", ["nan", "-1", "0", "many", "inf"])
def test_a_value_that_is_no_positive_number_is_rejected(text: str) -> None:
    with pytest.raises(click.UsageError, match="must be a number above 0"):
        quota_values((("request_percentage", text),))


def test_an_unknown_quota_is_rejected_with_the_valid_ones() -> None:
    with pytest.raises(click.UsageError, match="producer_byte_rate"):
        quota_names(("produce_byte_rate",))


def test_values_have_no_needless_digits() -> None:
    assert (value_text(1_000_000.0), value_text(12.5)) == ("1,000,000", "12.5")
