"""Kafka's messages, one module per API with its request, its response and their parts.

A module is imported when its API is first met: a node that never answers DescribeQuorum does
not pay for it.
"""

from importlib import import_module

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message


def request_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's requests."""
    return _message_class(api_key, "Request")


def response_class(api_key: ApiKey) -> type[Message]:
    """The class of an API's responses."""
    return _message_class(api_key, "Response")


def _message_class(api_key: ApiKey, suffix: str) -> type[Message]:
    module = import_module(f"{__name__}.{api_key.name.lower()}")
    found: type[Message] = getattr(module, api_key.name.title().replace("_", "") + suffix)
    return found
