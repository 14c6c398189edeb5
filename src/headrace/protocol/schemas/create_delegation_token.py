"""CreateDelegationToken: API key 38.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class CreatableRenewers(Structure):
    principal_type: Annotated[str, "0+"] = ""
    principal_name: Annotated[str, "0+"] = ""


class CreateDelegationTokenRequest(Message):
    API_KEY = 38
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    owner_principal_type: Annotated[str | None, "3+"] = ""
    owner_principal_name: Annotated[str | None, "3+"] = ""
    renewers: Annotated[list[CreatableRenewers], "0+"] = []
    max_lifetime_ms: Annotated[Int64, "0+"] = 0


class CreateDelegationTokenResponse(Message):
    API_KEY = 38
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    error_code: Annotated[Int16, "0+"] = 0
    principal_type: Annotated[str, "0+"] = ""
    principal_name: Annotated[str, "0+"] = ""
    token_requester_principal_type: Annotated[str, "3+"] = ""
    token_requester_principal_name: Annotated[str, "3+"] = ""
    issue_timestamp_ms: Annotated[Int64, "0+"] = 0
    expiry_timestamp_ms: Annotated[Int64, "0+"] = 0
    max_timestamp_ms: Annotated[Int64, "0+"] = 0
    token_id: Annotated[str, "0+"] = ""
    hmac: Annotated[bytes, "0+"] = b""
    throttle_time_ms: Annotated[Int32, "0+"] = 0
