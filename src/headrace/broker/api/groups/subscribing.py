"""The rights of the members of consumer, share and streams groups."""

from collections.abc import Iterable

from headrace.broker.api.registry import Call
from headrace.errors import TopicAuthorizationFailed
from headrace.security.acls import Operation, ResourceType


def check_subscription(group_id: str, topics: Iterable[str], call: Call) -> None:
    """Raise unless the client may join a group, and see all topics to which it subscribes.

    A repeated heartbeat is allowed until rules change.
    """
    access = call.access
    version = access.version
    if call.allowed_at == version:
        return
    access.check(Operation.READ, ResourceType.GROUP, group_id)
    if not access.allows_all(Operation.DESCRIBE, ResourceType.TOPIC, topics):
        raise TopicAuthorizationFailed("the member subscribes to topics that it may not describe")
    call.allowed_at = version
