"""Throttles of replication: which replicas they hold back, and when."""

from collections.abc import Mapping

import msgspec
import pytest

from headrace.broker.replication_throttles import ReplicationThrottle
from headrace.metadata.image import EMPTY, ConfigResource, ResourceType
from headrace.quotas.rates import Windows
from headrace.testing.clock import SimulatedClock

NODE = 1
REPLICAS = "follower.replication.throttled.replicas"
RATE = "follower.replication.throttled.rate"


def throttle(
    replicas: str, rates: Mapping[str, str] = {"": "1000"}, clock: SimulatedClock | None = None
) -> ReplicationThrottle:
    made = ReplicationThrottle("follower", clock or SimulatedClock(), Windows())
    configs: dict[ConfigResource, Mapping[str, str]] = {
        ConfigResource(ResourceType.BROKER, name): {RATE: rate} for name, rate in rates.items()
    }
    configs[ConfigResource(ResourceType.TOPIC, "orders")] = {REPLICAS: replicas}
    made.follow(msgspec.structs.replace(EMPTY, configs=configs), NODE)
    return made


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("*", [0, 1, 2]), ("0:1,1:2,2:1", [0, 2]), ("0:2", []), ("", [])],
)
def test_replicas_of_this_broker_are_throttled(replicas: str, throttled: list[int]) -> None:
    made = throttle(replicas)
    assert [one for one in range(3) if made.is_throttled("orders", one)] == throttled
    assert bool(made.replicas) == bool(throttled)
    assert not made.is_throttled("others", 0)


def test_a_rate_beyond_the_limit_is_exceeded_until_it_is_back() -> None:
    clock = SimulatedClock()
    made = throttle("*", clock=clock)
    made.record(1500)
    assert made.is_exceeded()
    assert made.delay_ms() == 500
    clock.advance(1500)
    assert not made.is_exceeded()


def test_a_broker_of_its_own_rate_ignores_the_default() -> None:
    made = throttle("*", {"": "1", str(NODE): "1000000"})
    made.record(1000)
    assert not made.is_exceeded()


def test_without_a_rate_nothing_is_exceeded() -> None:
    made = throttle("*", {})
    made.record(1 << 40)
    assert not made.is_exceeded()


def test_the_delay_is_bounded() -> None:
    made = throttle("*")
    made.record(1 << 40)
    assert made.delay_ms() == 1000
