"""SaslHandshake: API key 17.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message


class SaslHandshakeRequest(Message):
    API_KEY = 17
    VERSIONS = range(2)

    mechanism: str = ""

    FIELDS = """
        mechanism  string  0+
    """


class SaslHandshakeResponse(Message):
    API_KEY = 17
    VERSIONS = range(2)

    error_code: int = 0
    mechanisms: list[str] = []

    FIELDS = """
        error_code  int16     0+
        mechanisms  []string  0+
    """
