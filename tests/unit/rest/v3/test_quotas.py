"""Whose a quota is, as it is written in requests and as Kafka has it."""

import pytest

from headrace.rest.v3.quotas import QuotaEntity, entity_of


@pytest.mark.parametrize(
    ("entity", "parts"),
    [
        (QuotaEntity(user="ada"), {"user": "ada"}),
        (QuotaEntity(user=""), {"user": None}),
        (QuotaEntity(user="ada", client_id=""), {"user": "ada", "client-id": None}),
        (QuotaEntity(ip="10.0.0.1"), {"ip": "10.0.0.1"}),
    ],
)
def test_an_empty_name_is_the_default_and_none_is_no_part(
    entity: QuotaEntity, parts: dict[str, str | None]
) -> None:
    assert entity.parts() == parts
    assert entity_of(parts) == entity
