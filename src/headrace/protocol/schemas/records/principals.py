"""The principal of a client, as envelopes contain it.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Message


class DefaultPrincipalData(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    type: Annotated[str, "0+"] = ""
    name: Annotated[str, "0+"] = ""
    token_authenticated: Annotated[bool, "0+"] = False
