"""SaslHandshake: API key 17.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Message


class SaslHandshakeRequest(Message):
    API_KEY = 17
    VERSIONS = range(2)

    mechanism: Annotated[str, "0+"] = ""


class SaslHandshakeResponse(Message):
    API_KEY = 17
    VERSIONS = range(2)

    error_code: Annotated[Int16, "0+"] = 0
    mechanisms: Annotated[list[str], "0+"] = []
