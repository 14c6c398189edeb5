"""Entities of quotas in requests and in Kafka."""

import pytest

from headrace.rest.v3.quotas import entity_of, parts_of
from headrace.rest.v3.resources import QuotaEntity


@pytest.mark.parametrize(
    ("entity", "parts"),
    [
        (QuotaEntity(user="ada"), {"user": "ada"}),
        (QuotaEntity(user=""), {"user": None}),
        (QuotaEntity(user="ada", client_id=""), {"user": "ada", "client-id": None}),
        (QuotaEntity(ip="10.0.0.1"), {"ip": "10.0.0.1"}),
    ],
)
def test_an_empty_name_is_the_default_entity(
    entity: QuotaEntity, parts: dict[str, str | None]
) -> None:
    assert parts_of(entity) == parts
    assert entity_of(parts) == entity
