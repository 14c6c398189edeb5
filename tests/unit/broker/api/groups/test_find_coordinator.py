"""FindCoordinator: well-formed keys have no coordinator yet, the others never will."""

from pathlib import Path

import pytest

from headrace.errors import CoordinatorNotAvailable, InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.find_coordinator import FindCoordinatorRequest
from tests.unit.broker.api.builders import UnitBroker, a_broker, ask


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    return a_broker(tmp_path)


@pytest.mark.parametrize("version", range(7))
async def test_there_is_none_yet(broker: UnitBroker, version: int) -> None:
    request = (
        FindCoordinatorRequest(coordinator_keys=["g", "h"])
        if version >= 4
        else FindCoordinatorRequest(key="g")
    )
    told = await ask(broker, ApiKey.FIND_COORDINATOR, request, version)
    if version >= 4:
        assert [(one.key, one.error_code) for one in told.coordinators] == [
            ("g", CoordinatorNotAvailable.code),
            ("h", CoordinatorNotAvailable.code),
        ]
    else:
        assert told.error_code == CoordinatorNotAvailable.code
        assert (told.node_id, told.host, told.port) == (-1, "", -1)


@pytest.mark.parametrize(
    ("key_type", "key", "version", "error"),
    [
        (1, "t", 6, CoordinatorNotAvailable),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0", 6, CoordinatorNotAvailable),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0", 5, InvalidRequest),
        (2, "g", 6, InvalidRequest),
        (3, "g", 6, InvalidRequest),
        (-1, "g", 6, InvalidRequest),
    ],
)
async def test_kinds_of_coordinators(
    broker: UnitBroker,
    key_type: int,
    key: str,
    version: int,
    error: type[InvalidRequest],
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    told = await ask(broker, ApiKey.FIND_COORDINATOR, request, version)
    assert told.coordinators[0].error_code == error.code
