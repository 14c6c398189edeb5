"""Requests that a client repeats byte for byte: they are decoded once.

The heartbeats of a group's member differ only in their correlation id. So a connection keeps its
last heartbeat, decoded, with its bytes. Equal bytes are an equal request, which the handler answers
as it would answer a decoded one. So a change of the group cannot make the kept request wrong.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from headrace.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from headrace.broker.api.registry import Call, Entry, Handler

REPEATED = frozenset(
    {
        int(ApiKey.HEARTBEAT),
        int(ApiKey.CONSUMER_GROUP_HEARTBEAT),
        int(ApiKey.SHARE_GROUP_HEARTBEAT),
        int(ApiKey.STREAMS_GROUP_HEARTBEAT),
    }
)
"""The APIs whose requests are repeated; their handlers do not change a request."""

KEPT_BYTES_MAX = 1024
"""Larger requests are not kept: the broker may have many connections."""


class Decoded(msgspec.Struct):
    """A decoded request; one that may be repeated has the bytes of its frame as well."""

    entry: "Entry"
    handler: "Handler"
    request: Any
    call: "Call"
    opening: int = 0
    """API key and version in one."""
    rest: bytes = b""
    """The bytes after the correlation id."""
