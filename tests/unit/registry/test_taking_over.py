"""A topic of another registry is used unchanged."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.registry.model.records import decoded
from tests.processes.registries import RegistryWithoutKafka, client_of, register

TOPIC = Path(__file__).parents[2] / "data" / "karapace_schemas.json"


class RecordedTopic(msgspec.Struct):
    """Records, and the answers of the registry that wrote them."""

    records: list[tuple[str, str | None, int]]
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def taken() -> RecordedTopic:
    return msgspec.json.decode(TOPIC.read_bytes(), type=RecordedTopic)


@pytest.fixture
def registry(taken: RecordedTopic) -> RegistryWithoutKafka:
    registry = RegistryWithoutKafka()
    for key, value, timestamp_ms in taken.records:
        content = None if value is None else value.encode()
        registry.state.replay(decoded(key.encode(), content), timestamp_ms)
    return registry


async def test_a_topic_of_karapace_gets_the_answers_of_karapace(
    taken: RecordedTopic, registry: RegistryWithoutKafka
) -> None:
    """Its answers lack some members and have another order; it lists deleted versions too."""
    async with client_of(registry) as client:
        for path, expected in taken.answers.items():
            found = (await client.get(path)).json()
            if isinstance(expected, dict):
                found = {name: found.get(name) for name in expected}
            else:
                found, expected = sorted(found, key=str), sorted(expected, key=str)
            assert found == expected, path


async def test_ids_continue_after_those_of_karapace(registry: RegistryWithoutKafka) -> None:
    user = registry.state.subjects["users-value"][1].value.schema
    async with client_of(registry) as client:
        assert await register(client, "users-value", user) == 1
        assert await register(client, "new-value", '"double"') == 10
        deleted = (await client.get("/subjects?deletedOnly=true")).json()
    assert deleted == ["old-value"]
