"""DescribeDelegationToken: API key 41.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class DescribeDelegationTokenOwner(Structure):
    principal_type: Annotated[str, "0+"] = ""
    principal_name: Annotated[str, "0+"] = ""


class DescribeDelegationTokenRequest(Message):
    API_KEY = 41
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    owners: Annotated[list[DescribeDelegationTokenOwner] | None, "0+"] = []


class DescribedDelegationTokenRenewer(Structure):
    principal_type: Annotated[str, "0+"] = ""
    principal_name: Annotated[str, "0+"] = ""


class DescribedDelegationToken(Structure):
    principal_type: Annotated[str, "0+"] = ""
    principal_name: Annotated[str, "0+"] = ""
    token_requester_principal_type: Annotated[str, "3+"] = ""
    token_requester_principal_name: Annotated[str, "3+"] = ""
    issue_timestamp: Annotated[Int64, "0+"] = 0
    expiry_timestamp: Annotated[Int64, "0+"] = 0
    max_timestamp: Annotated[Int64, "0+"] = 0
    token_id: Annotated[str, "0+"] = ""
    hmac: Annotated[bytes, "0+"] = b""
    renewers: Annotated[list[DescribedDelegationTokenRenewer], "0+"] = []


class DescribeDelegationTokenResponse(Message):
    API_KEY = 41
    VERSIONS = range(1, 4)
    FLEXIBLE_FROM = 2

    error_code: Annotated[Int16, "0+"] = 0
    tokens: Annotated[list[DescribedDelegationToken], "0+"] = []
    throttle_time_ms: Annotated[Int32, "0+"] = 0
