"""SASL PLAIN (RFC 4616): name and password in plain text, secret only under TLS."""

from headrace.security.sasl import Exchange


def authenticate(username: str, password: str) -> Exchange:
    """Send name and password; the server's answer has no content to check."""
    yield b"\0".join((b"", username.encode(), password.encode()))
