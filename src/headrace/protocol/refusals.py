"""Responses that report one error for everything that a request names.

Many responses have their error codes in each topic or partition and none at the top. When such a
request fails as a whole, the response repeats the keys of the request with the error. It is built
from the definitions of the two messages: the first array of the request matches the array of the
response, at every level down to the first that has an error code.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from headrace.errors import KafkaError
from headrace.protocol.fields import Field, fields_of
from headrace.protocol.message import Message

S = TypeVar("S")

Refusal = Callable[[Any, KafkaError, int], Message]
"""Makes the response from the request, the error and the version of the API."""

_KEYS = (
    "name",
    "topic",
    "topic_id",
    "partition",
    "partition_index",
    "group_id",
    "resource_type",
    "resource_name",
    "transactional_id",
    "producer_id",
)
"""The fields that identify an item; other fields of equal names differ in meaning."""


def refusal_of(response_type: type[Message]) -> Refusal:
    """The refusal of a response that puts an error code at the top, or one into each item."""
    own = _PARTICULAR.get(response_type.__name__)
    if own is not None:
        return lambda request, error, version: own(response_type, request, error)
    inner: Any = response_type
    while "error_code" not in inner.__struct_fields__:
        array = _array(inner)
        assert array is not None, f"{response_type.__name__} needs a refusal of its own"
        inner = array.structure
    return lambda request, error, version: refused(response_type, request, error)


def refused(structure: type[S], asked: Any, error: KafkaError) -> S:
    """One structure of a response, for a structure of the request or for a plain key."""
    names = cast(Any, structure).__struct_fields__
    keys = [name for name in _KEYS if name in names]
    values: dict[str, Any]
    if isinstance(asked, msgspec.Struct):
        values = {name: getattr(asked, name) for name in keys if hasattr(asked, name)}
    else:
        values = {keys[0]: asked}
    if "error_code" in names:
        values["error_code"] = error.code
        if "error_message" in names:
            values["error_message"] = str(error) or None
        return structure(**values)
    results, items = _array(structure), _array(type(asked))
    assert results is not None
    assert results.structure is not None
    assert items is not None
    inner = results.structure
    found = getattr(asked, items.name) or ()
    return structure(**values, **{results.name: [refused(inner, one, error) for one in found]})


def _array(structure: Any) -> Field | None:
    return next((field for field in fields_of(structure) if field.is_array), None)


def _refused_users(response_type: Any, request: Any, error: KafkaError) -> Message:
    """A response about users, each of which may be in several entries of the request."""
    users = sorted({one.name for one in (*request.deletions, *request.upsertions)})
    results = _array(response_type)
    assert results is not None
    result: Any = results.structure
    refused_ones = [result(user, error.code, str(error) or None) for user in users]
    return cast(Message, response_type(**{results.name: refused_ones}))


def _refused_entities(response_type: Any, request: Any, error: KafkaError) -> Message:
    """A response about entities, each of which is a list of names."""
    entries = _array(response_type)
    assert entries is not None
    entry: Any = entries.structure
    names = _array(entry)
    assert names is not None
    name: Any = names.structure
    refused_ones = [
        entry(
            error.code,
            str(error) or None,
            [name(part.entity_type, part.entity_name) for part in one.entity],
        )
        for one in request.entries
    ]
    return cast(Message, response_type(**{entries.name: refused_ones}))


_PARTICULAR: dict[str, Callable[[Any, Any, KafkaError], Message]] = {
    "AlterUserScramCredentialsResponse": _refused_users,
    "AlterClientQuotasResponse": _refused_entities,
}
"""Refusals of responses whose items are not those of the request's first array."""
