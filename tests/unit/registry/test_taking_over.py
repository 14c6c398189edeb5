"""A topic that another registry has written is taken over as it is."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.registry.model.records import decoded
from tests.registries import RegistryWithoutKafka, client_of, register

TOPIC = Path(__file__).parents[2] / "data" / "karapace_schemas.json"


class Taken(msgspec.Struct):
    """Records, and what who wrote them answered."""

    records: list[tuple[str, str | None, int]]
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def taken() -> Taken:
    return msgspec.json.decode(TOPIC.read_bytes(), type=Taken)


@pytest.fixture
def registry(taken: Taken) -> RegistryWithoutKafka:
    registry = RegistryWithoutKafka()
    for key, value, timestamp_ms in taken.records:
        told = None if value is None else value.encode()
        registry.state.replay(decoded(key.encode(), told), timestamp_ms)
    return registry


async def test_karapaces_topic_is_answered_as_karapace_answered_it(
    taken: Taken, registry: RegistryWithoutKafka
) -> None:
    """It says less of a schema and lists in another order; what is gone for good it still tells."""
    async with client_of(registry) as client:
        for path, expected in taken.answers.items():
            found = (await client.get(path)).json()
            if isinstance(expected, dict):
                found = {name: found.get(name) for name in expected}
            else:
                found, expected = sorted(found, key=str), sorted(expected, key=str)
            assert found == expected, path


async def test_ids_go_on_where_karapace_has_stopped(registry: RegistryWithoutKafka) -> None:
    user = registry.state.subjects["users-value"][1].value.schema
    async with client_of(registry) as client:
        assert await register(client, "users-value", user) == 1
        assert await register(client, "new-value", '"double"') == 10
        deleted = (await client.get("/subjects?deletedOnly=true")).json()
    assert deleted == ["old-value"]
