"""Usage of clients by windows of time, as a node's metrics port serves it on `/usage`."""

import msgspec

MINUTE_MS, HOUR_MS = 60_000, 3_600_000


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of one client in a window; `user` and `client_id` name the client."""

    user: str
    client_id: str
    requests: int
    bytes_in: int
    bytes_out: int
    request_seconds: float


class UsageWindow(msgspec.Struct, frozen=True):
    """The usage of all clients from a time to another, in milliseconds since 1970."""

    begin_ms: int
    end_ms: int
    rows: list[UsageRow]


class NodeUsage(msgspec.Struct, frozen=True):
    """The windows of one node, oldest first; the last ones are not over."""

    node: int
    minutes: list[UsageWindow]
    hours: list[UsageWindow]
