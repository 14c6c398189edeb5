"""Valid and invalid quotas."""

from collections.abc import Mapping

import pytest

from headrace.errors import InvalidRequest
from headrace.quotas.validation import check_entity, check_value

LONG_MAX = float((1 << 63) - 1)
INT_MAX = (1 << 31) - 1


@pytest.mark.parametrize(
    "entity",
    [
        {"user": "ada"},
        {"user": None},
        {"client-id": "app"},
        {"client-id": None},
        {"user": "ada", "client-id": None},
        {"user": None, "client-id": "app"},
        {"ip": "10.0.0.1"},
        {"ip": "::1"},
        {"ip": None},
    ],
)
def test_users_clients_both_and_addresses_have_quotas(entity: Mapping[str, str | None]) -> None:
    check_entity(entity)


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ({}, "needs an entity"),
        ({"user": ""}, "user must not be empty"),
        ({"client-id": ""}, "client-id must not be empty"),
        ({"ip": ""}, "ip must not be empty"),
        ({"group": "g"}, "not a type of entities"),
        ({"ip": "10.0.0.1", "user": "ada"}, "cannot be combined"),
        ({"ip": None, "client-id": None}, "cannot be combined"),
        ({"ip": "10.0.0.256"}, "not an IP address"),
    ],
)
def test_other_entities_have_none(entity: Mapping[str, str | None], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_entity(entity)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("user", "producer_byte_rate", 1.0),
        ("user", "consumer_byte_rate", LONG_MAX),
        ("client-id", "request_percentage", 0.5),
        ("client-id", "controller_mutation_rate", 1e300),
        ("user", "producer_byte_rate", 1000.0000001),
        ("ip", "connection_creation_rate", float(INT_MAX)),
    ],
)
def test_values_within_the_limits_are_valid(kind: str, key: str, value: float) -> None:
    check_value({kind: None}, key, value)


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("user", "producer_bytes", 1.0, "not a quota of this entity"),
        ("user", "connection_creation_rate", 1.0, "not a quota of this entity"),
        ("ip", "producer_byte_rate", 1.0, "not a quota of this entity"),
        ("user", "producer_byte_rate", 0.0, "more than 0"),
        ("user", "request_percentage", -1.0, "more than 0"),
        ("user", "request_percentage", float("nan"), "more than 0"),
        ("user", "consumer_byte_rate", 2.0**64, "at most"),
        ("ip", "connection_creation_rate", INT_MAX + 1.0, "at most"),
        ("user", "producer_byte_rate", 1.5, "whole number"),
        ("ip", "connection_creation_rate", 0.5, "whole number"),
    ],
)
def test_other_values_are_invalid(kind: str, key: str, value: float, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_value({kind: None}, key, value)
