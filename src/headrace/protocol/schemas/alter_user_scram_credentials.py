"""AlterUserScramCredentials: API key 51.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class ScramCredentialDeletion(Structure):
    name: Annotated[str, "0+"] = ""
    mechanism: Annotated[Int8, "0+"] = 0


class ScramCredentialUpsertion(Structure):
    name: Annotated[str, "0+"] = ""
    mechanism: Annotated[Int8, "0+"] = 0
    iterations: Annotated[Int32, "0+"] = 0
    salt: Annotated[bytes, "0+"] = b""
    salted_password: Annotated[bytes, "0+"] = b""


class AlterUserScramCredentialsRequest(Message):
    API_KEY = 51
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    deletions: Annotated[list[ScramCredentialDeletion], "0+"] = []
    upsertions: Annotated[list[ScramCredentialUpsertion], "0+"] = []


class AlterUserScramCredentialsResult(Structure):
    user: Annotated[str, "0+"] = ""
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""


class AlterUserScramCredentialsResponse(Message):
    API_KEY = 51
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    results: Annotated[list[AlterUserScramCredentialsResult], "0+"] = []
