"""The request and the response of each API, found by the API's key when they are first needed."""

import sys
from functools import cache
from importlib import import_module

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message

_REQUEST = "Request"


@cache
def request_type_of(key: int) -> type[Message] | None:
    """Return the request of an API; None for an API that this version has no definition of."""
    try:
        name = ApiKey(key).name.lower()
        module = import_module(f"headrace.protocol.schemas.{name}")
    except (ValueError, ModuleNotFoundError):
        return None
    found: type[Message] = next(
        one
        for one in vars(module).values()
        if isinstance(one, type) and getattr(one, "API_KEY", -1) == key and _is_request(one)
    )
    return found


@cache
def response_type_of(request_type: type[Message]) -> type[Message]:
    """Return the response to a request; it is defined in the same module."""
    module = sys.modules[request_type.__module__]
    name = request_type.__name__.removesuffix(_REQUEST) + "Response"
    found: type[Message] = getattr(module, name)
    return found


def _is_request(message: type[Message]) -> bool:
    return message.__name__.endswith(_REQUEST)
