"""Throttles of replication: bytes per second that this broker sends or takes as a replica.

The replicas that a throttle holds back are named by topics, as `partition:broker` pairs; the rates
are dynamic configs of brokers. As in Kafka, replicas in sync are never held back, but their bytes
count. So a new replica that copies a log slows down, and acks=all does not.
"""

from typing import TYPE_CHECKING

from headrace.metadata.image import ResourceType
from headrace.quotas.rates import SimpleRate, Windows
from headrace.quotas.throttling import Limited

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.metadata.image import MetadataImage
    from headrace.runtime.clock import Clock

_NO_LIMIT = float((1 << 63) - 1)
_ALL: frozenset[int] = frozenset((-1,))
_DELAY_MS_MIN, _DELAY_MS_MAX = 20, 1000


class ReplicationThrottle:
    """One direction: the replicas that are throttled, their rate and its limit."""

    def __init__(self, direction: str, clock: "Clock", windows: Windows) -> None:
        self._clock = clock
        self._limited = Limited(SimpleRate(windows), _NO_LIMIT)
        self._rate_config = f"{direction}.replication.throttled.rate"
        self._replicas_config = f"{direction}.replication.throttled.replicas"
        self.replicas: dict[str, frozenset[int]] = {}
        """The throttled partitions of each topic; empty if no replica is throttled here."""

    def follow(self, image: "MetadataImage", broker_id: int) -> None:
        """Put the configs of an image into force."""
        own = image.configs_of(ResourceType.BROKER, str(broker_id))
        of_all = image.configs_of(ResourceType.BROKER, "")
        rate = own.get(self._rate_config, of_all.get(self._rate_config))
        self._limited.limit = _NO_LIMIT if rate is None else float(rate)
        self.replicas = {
            resource.name: throttled
            for resource, configs in image.configs.items()
            if resource.type == ResourceType.TOPIC
            and (throttled := self._throttled(configs, broker_id))
        }

    def is_throttled(self, topic: str, partition: int) -> bool:
        replicas = self.replicas.get(topic, ())
        return replicas is _ALL or partition in replicas

    def record(self, size: int) -> None:
        """Count bytes of a throttled replica."""
        self._limited.note(size, self._clock.monotonic_ms())

    def is_exceeded(self) -> bool:
        return self._limited.is_exceeded(self._clock.monotonic_ms())

    def delay_ms(self) -> int:
        """Return the time after which a replica that is held back is tried again."""
        delay_ms = self._limited.delay_ms(self._clock.monotonic_ms())
        return max(_DELAY_MS_MIN, min(delay_ms, _DELAY_MS_MAX))

    def rate(self) -> float:
        return self._limited.rate(self._clock.monotonic_ms())

    def _throttled(self, configs: "Mapping[str, str]", broker_id: int) -> frozenset[int]:
        text = configs.get(self._replicas_config, "").strip()
        if text == "*":
            return _ALL
        pairs = [pair.split(":") for pair in text.split(",") if ":" in pair]
        return frozenset(int(pair[0]) for pair in pairs if int(pair[1]) == broker_id)


class ReplicationThrottles:
    """The throttles of both directions."""

    def __init__(self, clock: "Clock", windows: Windows) -> None:
        self.leader = ReplicationThrottle("leader", clock, windows)
        self.follower = ReplicationThrottle("follower", clock, windows)
        self._followed: object = None

    def follow(self, image: "MetadataImage", broker_id: int) -> None:
        """Put the configs of an image into force, if they have changed."""
        if image.configs is not self._followed:
            self._followed = image.configs
            self.leader.follow(image, broker_id)
            self.follower.follow(image, broker_id)
