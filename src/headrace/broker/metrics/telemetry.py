"""Client telemetry (KIP-714): the subscription of each client, and its newest metrics.

An operator defines client metrics subscriptions. Each client receives the union of the
subscriptions that match it, under an id that changes with them. The newest push of each client is
kept, within a bound, until the client has been silent for long. `client_metrics.py` shows it.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from headrace.errors import (
    InvalidRequest,
    KafkaError,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.uuids import ZERO, Uuid, is_reserved, random_uuid, to_text
from headrace.settings.client_metrics import CLIENT_METRICS_CONFIGS

if TYPE_CHECKING:
    from re import Pattern

    from headrace.protocol.otlp import Series

ACCEPTED_CODECS = (4, 3, 1, 2)  # Best first: zstd, lz4, gzip, snappy. Uncompressed is fine too.
ALL_METRICS = "*"
PUSH_INTERVAL_MS = 300_000

_CODEC_MAX = 4
_INSTANCES_MAX = 16_384
_SERIES_MAX = 5_000
SERIES_PER_CLIENT_MAX = 250
_FORGET_AFTER_MS = 60_000

Configs = Mapping[ConfigResource, Mapping[str, str]]


class ClientAttributes(msgspec.Struct, frozen=True):
    """The attributes of a client, under the names that a subscription's `match` config uses."""

    client_id: str
    client_instance_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class Subscription(msgspec.Struct, frozen=True):
    """The metrics that matching clients push, and the interval."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: "tuple[tuple[str, Pattern[str]], ...]"

    def matches(self, client: ClientAttributes) -> bool:
        return all(pattern.fullmatch(getattr(client, key)) for key, pattern in self.patterns)


class Instance(msgspec.Struct):
    """One client, from its first request until it has been silent for long."""

    client: ClientAttributes
    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int
    round: int  # The version of the subscriptions that it was matched against.
    last_get_ms: int = 0
    last_push_ms: int = 0
    last_seen_ms: int = 0
    is_terminating: bool = False
    last_error: type[KafkaError] | None = None


class PushedMetrics(msgspec.Struct, frozen=True):
    """The newest push of a client."""

    client: ClientAttributes
    received_ms: int
    series: "Sequence[Series]"


class Telemetry:
    """The clients that use telemetry, and their newest metrics."""

    def __init__(self, size_bytes_max: int) -> None:
        self.size_bytes_max = size_bytes_max
        self._subscriptions: list[Subscription] = []
        self._configs: Configs | None = None
        self._round = 0
        self._instances: OrderedDict[Uuid, Instance] = OrderedDict()
        self._pushed: OrderedDict[Uuid, PushedMetrics] = OrderedDict()
        self._series_count = 0
        self.pushes = 0
        self.pushes_dropped = 0

    def use(self, configs: Configs) -> None:
        """Apply the cluster's configs; unchanged configs are the same object and cost nothing."""
        if configs is self._configs:
            return
        subscriptions = [
            _subscription(configs[resource])
            for resource in sorted(configs)
            if resource.type == ResourceType.CLIENT_METRICS and configs[resource]
        ]
        if subscriptions != self._subscriptions:
            self._subscriptions = subscriptions
            self._round += 1
        self._configs = configs

    def is_subscribed(self, configs: Configs) -> bool:
        """Return whether any subscription exists, whichever clients it matches."""
        self.use(configs)
        return bool(self._subscriptions)

    def subscribe(self, instance_id: Uuid, client: ClientAttributes, now_ms: int) -> Instance:
        """Return the subscription of a client; raise if its push interval has not passed.

        A client may repeat the request early if its subscription changed, or if its last push was
        rejected for a reason that a new subscription resolves.
        """
        instance = self._instance(instance_id, client, now_ms)
        due_ms = max(instance.last_get_ms, instance.last_push_ms) + instance.interval_ms
        curable = instance.last_error in (UnknownSubscriptionId, UnsupportedCompressionType)
        if now_ms < due_ms and not curable:
            raise ThrottlingQuotaExceeded("the client asked again before its push interval")
        instance.last_get_ms = now_ms
        instance.last_error = None
        return instance

    def accept(
        self,
        instance_id: Uuid,
        client: ClientAttributes,
        now_ms: int,
        *,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        size_bytes: int,
    ) -> None:
        """Raise unless a client may push this now."""
        if is_reserved(instance_id):
            raise InvalidRequest("the client instance id is missing or reserved")
        instance = self._instance(instance_id, client, now_ms)
        try:
            self._check_turn(instance, now_ms, is_terminating=is_terminating)
            if subscription_id != instance.subscription_id:
                raise UnknownSubscriptionId("the subscription has changed; request it again")
            if not 0 <= codec <= _CODEC_MAX:
                raise UnsupportedCompressionType(f"there is no compression type {codec}")
            if size_bytes > self.size_bytes_max:
                raise TelemetryTooLarge(
                    f"{size_bytes} bytes of metrics; telemetry.max.bytes is {self.size_bytes_max}"
                )
        except KafkaError as error:
            instance.last_error = type(error)
            raise
        finally:
            instance.is_terminating = is_terminating
        instance.last_error = None

    def store(self, instance_id: Uuid, pushed: PushedMetrics) -> None:
        """Store the newest push of a client; drop the oldest pushes beyond the bound."""
        self.pushes += 1
        self._forget_push(instance_id)
        self._pushed[instance_id] = pushed
        self._series_count += len(pushed.series)
        while self._series_count > _SERIES_MAX:
            self._forget_push(next(iter(self._pushed)))
            self.pushes_dropped += 1

    def refused(self, instance_id: Uuid, error: type[KafkaError]) -> None:
        """Record that an accepted push could not be decoded."""
        if instance_id in self._instances:
            self._instances[instance_id].last_error = error

    def pushed(self, now_ms: int) -> list[PushedMetrics]:
        """The newest push of every active client, the oldest first."""
        for instance_id, one in list(self._pushed.items()):
            if now_ms - one.received_ms > self._silence_ms(instance_id):
                self._forget_push(instance_id)
        return list(self._pushed.values())

    def _silence_ms(self, instance_id: Uuid) -> int:
        """The time after which a client counts as gone: three missed pushes."""
        instance = self._instances.get(instance_id)
        interval_ms = PUSH_INTERVAL_MS if instance is None else instance.interval_ms
        return max(_FORGET_AFTER_MS, 3 * interval_ms)

    def _forget_push(self, instance_id: Uuid) -> None:
        gone = self._pushed.pop(instance_id, None)
        if gone is not None:
            self._series_count -= len(gone.series)

    def _instance(self, instance_id: Uuid, client: ClientAttributes, now_ms: int) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None or instance.round != self._round:
            instance = self._match(client, instance_id)
            self._instances[instance_id] = instance
            while len(self._instances) > _INSTANCES_MAX:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        instance.last_seen_ms = now_ms
        self._forget_the_silent(now_ms)
        return instance

    def _match(self, client: ClientAttributes, instance_id: Uuid) -> Instance:
        matching = [one for one in self._subscriptions if one.matches(client)]
        metrics = tuple(sorted({name for one in matching for name in one.metrics}))
        if ALL_METRICS in metrics:
            metrics = (ALL_METRICS,)
        interval_ms = min([PUSH_INTERVAL_MS, *(one.interval_ms for one in matching)])
        identity = f"{metrics}{interval_ms}".encode() + instance_id
        subscription_id = crc32(identity) - (
            1 << 31
        )  # Any number that changes with the subscriptions.
        return Instance(client, subscription_id, metrics, interval_ms, self._round)

    def _forget_the_silent(self, now_ms: int) -> None:
        for instance_id, instance in self._instances.items():
            if now_ms - instance.last_seen_ms <= max(_FORGET_AFTER_MS, 3 * instance.interval_ms):
                return
            del self._instances[instance_id]
            return  # One per request is enough, since each request adds at most one.

    @staticmethod
    def _check_turn(instance: Instance, now_ms: int, *, is_terminating: bool) -> None:
        """A client pushes once per interval; a first push may follow its subscription at once."""
        if instance.is_terminating:
            raise InvalidRequest("the client has pushed its last metrics already")
        is_first = instance.last_get_ms > instance.last_push_ms
        if is_first or now_ms - instance.last_push_ms >= instance.interval_ms:
            instance.last_push_ms = now_ms
        elif not is_terminating:
            raise ThrottlingQuotaExceeded("the client pushed again before its push interval")


def instance_id_for(given: Uuid) -> Uuid:
    """The id of a client, or a new one for its first request."""
    return random_uuid() if given == ZERO else given


def attributes_of(
    instance_id: Uuid, client_id: str | None, software: tuple[str, str], host: str, port: int
) -> ClientAttributes:
    return ClientAttributes(
        client_id=client_id or "",
        client_instance_id=to_text(instance_id),
        client_software_name=software[0],
        client_software_version=software[1],
        client_source_address=host,
        client_source_port=str(port),
    )


def _subscription(configs: Mapping[str, str]) -> Subscription:
    import re  # Only where subscriptions are used.

    def value(name: str) -> object:
        definition = CLIENT_METRICS_CONFIGS[name]
        return definition.read(configs[name]) if name in configs else definition.default

    metrics, interval_ms, match = value("metrics"), value("interval.ms"), value("match")
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(match, tuple)
    pairs = (pair.partition("=") for pair in match)
    patterns = tuple((key.strip(), re.compile(pattern.strip())) for key, _, pattern in pairs)
    return Subscription(metrics, interval_ms, patterns)
