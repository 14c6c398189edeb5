"""The quotas of clients on this broker: produced bytes, fetched bytes, and request time.

Each request of a client with a quota is counted when it is answered. The client gets its throttle
time in the answer, and its connection is muted for that time (KIP-219). The request time is a
percentage of the one event loop, as one thread of Kafka: 50 is half of its time.

A client is counted for the owner of its quota, such as a user. An owner that is idle for an hour
is forgotten. Beyond a maximum the least recently used one is, and begins with a new burst.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from headrace.quotas.precedence import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Applied,
    Limits,
    Quotas,
)
from headrace.quotas.rates import Average, Rate, Windows
from headrace.quotas.throttling import THROTTLE_MS_MAX, Limited

if TYPE_CHECKING:
    from headrace.runtime.clock import Clock

_PERCENT_PER_NS = 100 / 1e9
_OWNERS_MAX = 10_000
_METERS_MAX = 10_000
_KEPT_CHARS_MAX = 256  # Clients choose their ids, of up to 32,767 characters.
_IDLE_MS_MAX = 3_600_000
BYTES_MAX = (1 << 31) - 1


class OwnerFigures(NamedTuple):
    """The figures of one owner of a quota at the moment of a scrape."""

    user: str
    client_id: str
    rate: float
    throttle_ms: float


class Owner:
    """The traffic of all clients that one quota counts together, and their throttle times."""

    __slots__ = ("delays", "limited", "used_ms")

    def __init__(self, windows: Windows, limit: float, delay_max_ms: int, now_ms: int) -> None:
        self.limited = Limited(Rate(windows), limit, delay_max_ms)
        self.delays = Average()
        self.used_ms = now_ms


class QuotaKind:
    """One kind of quota: its limits in the cluster, and its owners on this broker."""

    def __init__(self, key: str, windows: Windows, delay_max_ms: int = THROTTLE_MS_MAX) -> None:
        self._key = key
        self._windows = windows
        self._delay_max_ms = delay_max_ms
        self._owners: OrderedDict[tuple[str, str], Owner] = OrderedDict()
        self.limits = Limits({}, key)

    def follow(self, quotas: Quotas) -> None:
        self.limits = Limits(quotas, self._key)

    def owner(self, applied: Applied, now_ms: int) -> Owner:
        """Return the owner of a quota, with the limit that is in force now."""
        owners = self._owners
        key = applied.user, applied.client_id
        owner = owners.get(key)
        if owner is None:
            owner = Owner(self._windows, applied.limit, self._delay_max_ms, now_ms)
            self._forget_idle(now_ms)
            owners[key] = owner
        else:
            owners.move_to_end(key)
        owner.used_ms = now_ms
        owner.limited.limit = applied.limit
        return owner

    def figures(self, now_ms: int, count_max: int) -> Iterator[OwnerFigures]:
        """Return figures of the owners that were used last."""
        for (user, client_id), owner in list(reversed(self._owners.items()))[:count_max]:
            rate, delay_ms = owner.limited.rate(now_ms), owner.delays.measure(now_ms)
            yield OwnerFigures(user, client_id, rate, delay_ms)

    def __len__(self) -> int:
        return len(self._owners)

    def _forget_idle(self, now_ms: int) -> None:
        owners = self._owners
        while owners:
            key, oldest = next(iter(owners.items()))
            if now_ms - oldest.used_ms < _IDLE_MS_MAX and len(owners) < _OWNERS_MAX:
                return
            del owners[key]


class Meter:
    """The quotas of one client: those of its user and client id that apply."""

    __slots__ = ("_fetch", "_produce", "_quotas", "_request")

    def __init__(
        self,
        quotas: "ClientQuotas",
        produce: Applied | None,
        fetch: Applied | None,
        request: Applied | None,
    ) -> None:
        self._quotas = quotas
        self._produce = produce
        self._fetch = fetch
        self._request = request

    def produced(self, size: int, spent_ns: int) -> int:
        """Count a Produce request by its bytes and its time; return the throttle time."""
        now_ms = self._quotas.clock.monotonic_ms()
        by_bytes = self._count(self._quotas.produce, self._produce, size, now_ms)
        return self._longer(by_bytes, self._counted_time(spent_ns, now_ms), now_ms)

    def produced_unanswered(self, size: int) -> int:
        """Count a Produce request with acks=0, whose time does not count."""
        now_ms = self._quotas.clock.monotonic_ms()
        by_bytes = self._count(self._quotas.produce, self._produce, size, now_ms)
        return self._longer(by_bytes, (0, None), now_ms)

    def fetched(self, size: int, spent_ns: int) -> tuple[int, bool]:
        """Count records before they are sent; return the throttle time, and whether to send them.

        A throttled answer is sent without records, which are then not counted. Records beyond the
        quota's burst, such as one large batch, are sent if nothing was counted before them: unlike
        in Kafka, their consumer then gets them at last.
        """
        now_ms = self._quotas.clock.monotonic_ms()
        by_time = self._counted_time(spent_ns, now_ms)
        by_bytes = self._count(self._quotas.fetch, self._fetch, size, now_ms)
        throttle_ms = self._longer(by_bytes, by_time, now_ms)
        owner = by_bytes[1]
        if not throttle_ms or owner is None:
            return throttle_ms, not throttle_ms
        is_sent = not by_time[0] and owner.limited.is_alone(size, now_ms)
        if not is_sent:
            owner.limited.undo(size, now_ms)
        return throttle_ms, is_sent

    def fetched_and_sent(self, size: int, spent_ns: int) -> int:
        """Count an answer whose records are sent in any case."""
        now_ms = self._quotas.clock.monotonic_ms()
        by_time = self._counted_time(spent_ns, now_ms)
        by_bytes = self._count(self._quotas.fetch, self._fetch, size, now_ms)
        return self._longer(by_bytes, by_time, now_ms)

    def requested(self, spent_ns: int) -> int:
        """Count the time of a request; return the throttle time."""
        now_ms = self._quotas.clock.monotonic_ms()
        return self._longer((0, None), self._counted_time(spent_ns, now_ms), now_ms)

    @property
    def fetch_bytes_max(self) -> int:
        """The bytes of an answer that are not throttled if nothing was fetched before."""
        applied = self._fetch
        if applied is None:
            return BYTES_MAX
        return min(int(applied.limit * self._quotas.windows.full_s), BYTES_MAX)

    def _counted_time(self, spent_ns: int, now_ms: int) -> tuple[int, Owner | None]:
        percent = spent_ns * _PERCENT_PER_NS
        return self._count(self._quotas.request, self._request, percent, now_ms)

    @staticmethod
    def _count(
        kind: QuotaKind, applied: Applied | None, value: float, now_ms: int
    ) -> tuple[int, Owner | None]:
        if applied is None:
            return 0, None
        owner = kind.owner(applied, now_ms)
        return owner.limited.record(value, now_ms), owner

    @staticmethod
    def _longer(one: tuple[int, Owner | None], other: tuple[int, Owner | None], now_ms: int) -> int:
        """Return the longer throttle time, which is counted for the quota that it comes from."""
        throttle_ms, owner = one if one[0] > other[0] else other
        if throttle_ms and owner is not None:
            owner.delays.record(throttle_ms, now_ms)
        return throttle_ms


class ClientQuotas:
    """The quotas of all clients, by the metadata of the cluster."""

    def __init__(self, clock: "Clock", windows: Windows) -> None:
        self.clock = clock
        self.windows = windows
        self.produce = QuotaKind(PRODUCER_BYTE_RATE, windows)
        self.fetch = QuotaKind(CONSUMER_BYTE_RATE, windows)
        self.request = QuotaKind(REQUEST_PERCENTAGE, windows, delay_max_ms=windows.size_ms)
        self._meters: dict[tuple[str, str], Meter | None] = {}
        self._followed: Quotas = {}

    def __bool__(self) -> bool:
        """Return whether any client has a quota."""
        return bool(self.produce.limits or self.fetch.limits or self.request.limits)

    def follow(self, quotas: Quotas) -> bool:
        """Put the quotas of an image into force; return whether they differ from those before."""
        if quotas is self._followed or quotas == self._followed:
            return False
        self._followed = quotas
        for kind in (self.produce, self.fetch, self.request):
            kind.follow(quotas)
        self._meters.clear()
        return True

    def meter(self, user: str, client_id: str) -> Meter | None:
        """Return the quotas of a client; None if it has none."""
        key = user, client_id
        try:
            return self._meters[key]
        except KeyError:
            meter = self._find(user, client_id)
            if len(client_id) <= _KEPT_CHARS_MAX:
                if len(self._meters) >= _METERS_MAX:
                    self._meters.clear()
                self._meters[key] = meter
            return meter

    def _find(self, user: str, client_id: str) -> Meter | None:
        kinds = (self.produce, self.fetch, self.request)
        found = [kind.limits.find(user, client_id) for kind in kinds]
        return None if found == [None, None, None] else Meter(self, *found)
