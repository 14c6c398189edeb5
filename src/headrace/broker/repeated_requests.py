"""Requests that a client sends again and again, byte for byte: they are decoded once.

A member of a group says the same with every heartbeat, only the correlation id is another. So a
connection keeps its last such request as it was decoded, with the bytes that it was decoded from.
The same bytes are the same request; what it is answered is decided anew each time, by the same
handler as ever. So nothing that happens to the group can make what is kept wrong.
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
"""The APIs whose requests come again; their handlers change nothing in a request."""

KEPT_BYTES_MAX = 1024
"""What is larger is not kept: the broker may have many connections."""


class Repeated(msgspec.Struct):
    """A request, decoded, and its frame but for the correlation id."""

    opening: int  # API key and version in one.
    rest: bytes  # What follows the correlation id.
    entry: "Entry"
    handler: "Handler"
    request: Any
    call: "Call"
