"""The limits of a node's connections, by its settings."""

from collections.abc import Mapping

import msgspec

from headrace.quotas.rates import Windows
from headrace.runtime.addresses import plain_host
from headrace.settings.broker import BrokerSettings
from headrace.settings.listener_security import own_listener_value

UNLIMITED = (1 << 31) - 1
"""Kafka's default of limits that limit nothing."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one node's connections, under Kafka's property names."""

    socket_request_max_bytes: int = 100 << 20
    socket_send_buffer_bytes: int = -1
    socket_receive_buffer_bytes: int = -1
    connections_max_idle_ms: int = 600_000
    socket_listen_backlog_size: int = 1024
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    max_connections_per_ip_overrides: Mapping[str, int] = {}
    max_connection_creation_rate: int = UNLIMITED
    listener_max_connections: Mapping[str, int] = {}
    listener_max_connection_creation_rates: Mapping[str, int] = {}
    protected_listener: str | None = None
    """The listener between brokers, which the limits of the broker do not touch."""
    quota_windows: Windows = Windows()

    def connections_of(self, host: str) -> int:
        """Return the maximum number of connections of one address."""
        return self.max_connections_per_ip_overrides.get(host, self.max_connections_per_ip)


def limits_of(settings: BrokerSettings) -> ServerLimits:
    """Return the limits by the settings.

    Buffer sizes and backlog apply only if they were set: the kernel sizes buffers better than
    Kafka's defaults, and a backlog of 50 rejects most of a thousand clients that connect at once.
    """
    given = settings.given
    listeners = [listener.name for listener in settings.broker_listeners]
    return ServerLimits(
        socket_request_max_bytes=settings.socket_request_max_bytes,
        socket_send_buffer_bytes=(
            settings.socket_send_buffer_bytes if "socket.send.buffer.bytes" in given else -1
        ),
        socket_receive_buffer_bytes=(
            settings.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in given else -1
        ),
        connections_max_idle_ms=settings.connections_max_idle_ms,
        max_connections=settings.max_connections,
        socket_listen_backlog_size=(
            settings.socket_listen_backlog_size if "socket.listen.backlog.size" in given else 1024
        ),
        max_connections_per_ip=settings.max_connections_per_ip,
        max_connections_per_ip_overrides={
            plain_host(host): count for host, count in settings.connections_per_ip.items()
        },
        max_connection_creation_rate=settings.max_connection_creation_rate,
        listener_max_connections=_of_listeners(settings, listeners, "max.connections"),
        listener_max_connection_creation_rates=_of_listeners(
            settings, listeners, "max.connection.creation.rate"
        ),
        protected_listener=settings.inter_broker_listener if len(listeners) > 1 else None,
        quota_windows=client_windows(settings),
    )


def client_windows(settings: BrokerSettings) -> Windows:
    """Return the windows over which clients and connections are measured."""
    return Windows(settings.quota_window_num, 1000 * settings.quota_window_size_seconds)


def _of_listeners(settings: BrokerSettings, listeners: list[str], config: str) -> dict[str, int]:
    """Return the values of a property for the listeners that have one of their own."""
    values = {name: own_listener_value(settings, name, config) for name in listeners}
    return {name: value for name, value in values.items() if isinstance(value, int)}
