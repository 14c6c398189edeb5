"""SASL mechanisms as exchanges of bytes, independent of connections.

The client's side is a generator: it yields messages, receives the server's answers, and returns
when it accepts the last one. An invalid answer raises `SaslAuthenticationFailed`.
"""

from collections.abc import Generator

Exchange = Generator[bytes, bytes, None]
"""One authentication from the client's side."""
