"""Connections on which delegation tokens are allowed: authenticated ones, but not by a token."""

from headrace.broker.api.registry import Call
from headrace.errors import DelegationTokenRequestNotAllowed
from headrace.security.tokens import may_carry_tokens


def check_channel(call: Call) -> None:
    """Raise unless the client may send requests about tokens on its connection."""
    protocol = call.broker.settings.protocols.get(call.listener, "PLAINTEXT")
    if not may_carry_tokens(protocol, call.peer.principal):
        raise DelegationTokenRequestNotAllowed(
            "requests about tokens need a connection that is authenticated, and not by a token"
        )
