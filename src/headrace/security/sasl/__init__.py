"""SASL mechanisms as exchanges of bytes that know nothing of the connection they go over.

A client's side is a generator: it yields what to send, is sent what the server answered, and
returns when it is content. What a server must not answer raises `SaslAuthenticationFailed`.
"""

from collections.abc import Generator

Exchange = Generator[bytes, bytes, None]
"""One authentication, seen from the client."""
