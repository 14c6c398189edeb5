"""DescribeUserScramCredentials: API key 50.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class UserName(Structure):
    name: Annotated[str, "0+"] = ""


class DescribeUserScramCredentialsRequest(Message):
    API_KEY = 50
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    users: Annotated[list[UserName] | None, "0+"] = []


class CredentialInfo(Structure):
    mechanism: Annotated[Int8, "0+"] = 0
    iterations: Annotated[Int32, "0+"] = 0


class DescribeUserScramCredentialsResult(Structure):
    user: Annotated[str, "0+"] = ""
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    credential_infos: Annotated[list[CredentialInfo], "0+"] = []


class DescribeUserScramCredentialsResponse(Message):
    API_KEY = 50
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    results: Annotated[list[DescribeUserScramCredentialsResult], "0+"] = []
