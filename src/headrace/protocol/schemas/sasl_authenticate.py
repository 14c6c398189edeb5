"""SaslAuthenticate: API key 36.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int64, Message


class SaslAuthenticateRequest(Message):
    API_KEY = 36
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    auth_bytes: Annotated[bytes, "0+"] = b""


class SaslAuthenticateResponse(Message):
    API_KEY = 36
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    auth_bytes: Annotated[bytes, "0+"] = b""
    session_lifetime_ms: Annotated[Int64, "1+ ignorable"] = 0
