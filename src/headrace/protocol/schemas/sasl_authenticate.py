"""SaslAuthenticate: API key 36.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class SaslAuthenticateRequest(Message):
    API_KEY = 36
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    auth_bytes: bytes = b""

    FIELDS = """
        auth_bytes  bytes  0+
    """


class SaslAuthenticateResponse(Message):
    API_KEY = 36
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0

    FIELDS = """
        error_code           int16   0+
        error_message        string  0+  nullable
        auth_bytes           bytes   0+
        session_lifetime_ms  int64   1+  ignorable
    """
