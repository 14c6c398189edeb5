"""FindCoordinator: creates what is missing, and refuses what cannot be."""

from pathlib import Path

import pytest

from headrace.coordination.partitioning import partition_for
from headrace.errors import CoordinatorNotAvailable, InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.api.builders import NODE_ID, UnitBroker, a_broker, ask


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return a_broker(tmp_path)


@pytest.mark.parametrize("version", range(7))
async def test_the_first_request_creates_the_topic(broker: UnitBroker, version: int) -> None:
    """CON-1"""
    request = (
        FindCoordinatorRequest(coordinator_keys=["g", "h"])
        if version >= 4
        else FindCoordinatorRequest(key="g")
    )
    response = await ask(broker, ApiKey.FIND_COORDINATOR, request, version)
    found = response.coordinators if version >= 4 else [response]
    assert {(one.error_code, one.node_id, one.host, one.port) for one in found} == {
        (0, NODE_ID, "broker.example", 9092)
    }
    assert [one.key for one in response.coordinators] == (["g", "h"] if version >= 4 else [])
    topic = broker.image.topics["__consumer_offsets"]
    assert len(topic.partitions) == 50
    assert sorted(broker.groups.shards) == list(range(50))
    assert broker.groups.shard_for("g").partition.index == partition_for("g", 50)


async def test_the_topic_is_created_once(broker: UnitBroker) -> None:
    for _ in range(3):
        await ask(broker, ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g"]))
    assert broker.controller.decisions == 1


async def test_the_settings_shape_the_topic(tmp_path: Path) -> None:
    """There is one broker, so there is one replica, whatever the settings ask for."""
    broker = a_broker(tmp_path, offsets_topic_num_partitions=3, offsets_topic_segment_bytes=1 << 20)
    await ask(broker, ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g"]))
    topic = broker.image.topics["__consumer_offsets"]
    assert [one.replicas for one in topic.partitions] == [(NODE_ID,)] * 3
    log = broker.log("__consumer_offsets", 0)
    assert log.config.is_compacted
    assert log.config.segment_bytes == 1 << 20


@pytest.mark.parametrize(
    ("key_type", "key", "version", "error"),
    [
        (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0", 6, CoordinatorNotAvailable),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0", 5, InvalidRequest),
        (2, "g", 6, InvalidRequest),
        (3, "g", 6, InvalidRequest),
        (-1, "g", 6, InvalidRequest),
    ],
)
async def test_keys_of_unsupported_types_are_rejected(
    broker: UnitBroker,
    key_type: int,
    key: str,
    version: int,
    error: type[InvalidRequest],
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    response = await ask(broker, ApiKey.FIND_COORDINATOR, request, version)
    assert response.coordinators[0].error_code == error.code
    assert not broker.image.topics
