"""Requests that come again byte for byte: decoded once, decided on each time."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.connection import Connection
from headrace.broker.dispatch import Dispatcher
from headrace.broker.repeated_requests import KEPT_BYTES_MAX
from headrace.errors import (
    CoordinatorNotAvailable,
    IllegalGeneration,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.classic.group import ClassicGroup, Member, State
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode
from headrace.protocol.framing import encode_request, read_response_header
from headrace.protocol.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.unit.broker.api.builders import UnitBroker, a_broker

VERSION = 4
SESSION_MS = 10_000
GENERATION = 3


class Client:
    """A connection without a socket, and the frames that it was sent."""

    def __init__(self, broker: UnitBroker) -> None:
        round_ = SimpleNamespace(take=None, settle=None)
        self.dispatch = Dispatcher(
            cast(Any, SimpleNamespace(**vars(broker), loop=None, authorizer=None)),
            cast(Any, round_),
        )
        self.host, self.port, self.listener = "10.0.0.7", 40_000, "PLAINTEXT"
        self.produce_shape = None
        self.repeated: Any = None
        self.gathered = self.stashed_ns = self.requests = self.spent_ns = 0
        self.client_id: str | None = None
        self.is_waiting = False
        self.frames: list[bytes] = []

    def answer_in_round(self, frame: bytes) -> None:
        self.frames.append(frame)

    def beat(self, number: int = 1, version: int = VERSION, **fields: Any) -> int:
        """Send a heartbeat under a correlation id; the error code that comes back under it."""
        request = HeartbeatRequest("g", **{"generation_id": GENERATION, "member_id": "m", **fields})
        frame = bytearray(encode_request(request, version, number, "unit"))
        self.dispatch(cast(Connection, self), frame, 4, len(frame))
        answer = self.frames.pop()
        correlation_id, body = read_response_header(answer, ApiKey.HEARTBEAT, version, 4)
        assert correlation_id == number
        return decode(HeartbeatResponse, version, answer, body).error_code


@pytest.fixture
async def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path, offsets_topic_num_partitions=1)
    await broker.groups.ensure_topic()
    return broker


@pytest.fixture
async def group(broker: UnitBroker) -> ClassicGroup:
    """A stable group with the one member `m`."""
    group = ClassicGroup("g")
    member = Member("m", None, "unit", "/10.0.0.7", 1000, SESSION_MS, "consumer", ())
    group.add(member)
    group.generation = GENERATION
    group.state = State.STABLE
    broker.groups.shard_for("g").state.groups["g"] = group
    return group


@pytest.fixture
async def client(broker: UnitBroker, group: ClassicGroup) -> Client:
    """One that has sent its heartbeat before, so that it is known."""
    client = Client(broker)
    assert client.beat() == 0
    assert client.repeated is not None
    return client


async def test_the_same_bytes_are_not_decoded_again(client: Client) -> None:
    known = client.repeated
    assert [client.beat(number) for number in (2, 3, 2**31 - 1)] == [0, 0, 0]
    assert client.repeated is known


async def test_each_repetition_prolongs_the_session(client: Client, broker: UnitBroker) -> None:
    """Or a member that is heard of would be taken for dead."""
    shard = broker.groups.shard_for("g")
    set_timers = []
    broker.timers.set = lambda *given: set_timers.append(given)  # type: ignore[method-assign]
    client.beat(2)
    assert set_timers == [
        ((shard, ("classic.session", "g", "m")), broker.clock.monotonic_ms() + SESSION_MS)
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"generation": GENERATION + 1}, IllegalGeneration.code),
        ({"members": {}}, UnknownMemberId.code),
        ({"state": State.PREPARING_REBALANCE}, RebalanceInProgress.code),
        ({"state": State.COMPLETING_REBALANCE}, 0),
        ({"state": State.DEAD}, CoordinatorNotAvailable.code),
    ],
)
async def test_a_change_of_the_group_is_answered(
    client: Client, group: ClassicGroup, change: dict[str, Any], code: int
) -> None:
    for name, value in change.items():
        setattr(group, name, value)
    assert client.beat(2) == code


async def test_a_deleted_or_recreated_group_is_detected(client: Client, broker: UnitBroker) -> None:
    groups = broker.groups.shard_for("g").state.groups
    del groups["g"]
    assert client.beat(2) == UnknownMemberId.code
    groups["g"] = ClassicGroup("g")
    assert client.beat(3) == UnknownMemberId.code


async def test_a_moved_coordinator_is_detected(client: Client, broker: UnitBroker) -> None:
    broker.groups.stop()
    assert client.beat(2) == NotCoordinator.code


async def test_other_bytes_of_the_same_length_are_another_request(client: Client) -> None:
    assert client.beat(2, generation_id=GENERATION - 1) == IllegalGeneration.code
    assert client.beat(3, member_id="n") == UnknownMemberId.code
    assert client.beat(4) == 0


async def test_another_version_of_the_same_length_is_another_request(client: Client) -> None:
    """v1 and v2 of a heartbeat have the same fields."""
    assert client.beat(2, version=1) == client.beat(3, version=2) == 0
    assert client.repeated.call.version == 2


async def test_a_long_request_is_served_and_not_kept(client: Client) -> None:
    known = client.repeated
    assert client.beat(2, member_id="m" * KEPT_BYTES_MAX) == UnknownMemberId.code
    assert client.repeated is known


async def test_every_repetition_is_counted(client: Client, broker: UnitBroker) -> None:
    for number in range(2, 5):
        client.beat(number)
    assert broker.metrics.requests.api(ApiKey.HEARTBEAT).versions == {VERSION: 4}
