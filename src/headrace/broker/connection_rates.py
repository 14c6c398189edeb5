"""Rates of new connections: to the broker, to each listener, and from each address (KIP-402, 612).

A connection beyond the rate of the broker or of its listener is taken, and then no other one of
that listener for the throttle time. A connection beyond the rate of its address is closed after its
throttle time, and counts nowhere. Both times are one window at most. The listener between brokers
is exempt from the broker's rate, unless it is the only one.
"""

from collections import OrderedDict
from collections.abc import Mapping

from headrace.quotas.precedence import IP, Quotas, connection_limit
from headrace.quotas.rates import Average, Rate, Windows
from headrace.quotas.throttling import Limited
from headrace.runtime.addresses import plain_host

_ADDRESSES_MAX = 10_000


class ConnectionRates:
    """The measured rates; None is no limit."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._broker: Limited | None = None
        self._listeners: dict[str, Limited] = {}
        self._addresses: OrderedDict[str, Limited] = OrderedDict()
        self._quotas: Quotas = {}
        self.exempt_listener: str | None = None
        self.delays: dict[str, Average] = {}
        """The throttle times of each listener."""

    def limit(self, broker: int | None, listeners: Mapping[str, int]) -> None:
        """Put limits of the broker and of listeners into force; rates go on."""
        self._broker = self._limited(self._broker, broker)
        self._listeners = {
            name: limited
            for name, limit in listeners.items()
            if (limited := self._limited(self._listeners.get(name), limit)) is not None
        }

    def follow(self, quotas: Quotas) -> None:
        """Put quotas of addresses into force."""
        self._quotas = {
            ((IP, name if name is None else plain_host(name)),): values
            for ((kind, name), *_), values in quotas.items()
            if kind == IP
        }

    def accepted(self, listener: str, now_ms: int) -> int:
        """Count a connection; return the time for which the listener takes no other one."""
        delay_ms = 0
        if self._broker is not None and listener != self.exempt_listener:
            delay_ms = self._broker.record(1, now_ms)
        of_listener = self._listeners.get(listener)
        if of_listener is not None:
            delay_ms = max(delay_ms, of_listener.record(1, now_ms))
        if delay_ms:
            self.delays.setdefault(listener, Average()).record(delay_ms, now_ms)
        return delay_ms

    def refusal_ms(self, listener: str, host: str, now_ms: int) -> int:
        """Count a connection from an address; return the time after which it is closed, or 0.

        A refused connection is not counted, so that an address is served again after its time.
        """
        limit = connection_limit(self._quotas, host) if self._quotas else None
        if limit is None:
            return 0
        address = self._address(host, limit)
        delay_ms = address.record(1, now_ms)
        if delay_ms:
            address.undo(1, now_ms)
            if self._broker is not None and listener != self.exempt_listener:
                self._broker.undo(1, now_ms)
            if listener in self._listeners:
                self._listeners[listener].undo(1, now_ms)
        return delay_ms

    def _address(self, host: str, limit: float) -> Limited:
        """Return the rate of an address; beyond a maximum the oldest is forgotten."""
        addresses = self._addresses
        found = addresses.get(host)
        if found is None:
            if len(addresses) >= _ADDRESSES_MAX:
                addresses.popitem(last=False)
            found = addresses[host] = self._new(limit)
        addresses.move_to_end(host)
        found.limit = limit
        return found

    def _limited(self, present: Limited | None, limit: int | None) -> Limited | None:
        if limit is None:
            return None
        if present is None:
            return self._new(limit)
        present.limit = limit
        return present

    def _new(self, limit: float) -> Limited:
        return Limited(Rate(self._windows), limit, delay_max_ms=self._windows.size_ms)
