"""The state of one partition of `__consumer_offsets`, which decisions about groups read."""

from collections.abc import Callable
from typing import Protocol, cast

from headrace.coordination.effects import Effects, TimerKey
from headrace.coordination.metrics import CoordinatorMetrics
from headrace.errors import GroupIdNotFound
from headrace.groups.committed_offsets import Offsets
from headrace.groups.group import Group
from headrace.metadata.image import MetadataImage
from headrace.protocol.message import Message
from headrace.settings.broker import BrokerSettings


class _Remembering(Protocol):
    """A group with epochs, which has state without records."""

    memory: object


class GroupsState:
    """The groups of one partition, and their committed offsets."""

    def __init__(
        self,
        settings: Callable[[], BrokerSettings],
        image: Callable[[], MetadataImage],
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        self.settings = settings
        self.image = image
        self.metrics = metrics or CoordinatorMetrics()
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.is_loaded = False

    def find(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def put_classic(self, group: Group) -> None:
        """Store the classic group of a decision, after its records were replayed.

        The records hold all that must survive a restart; parked requests, phases of a rebalance
        and the members of an unfinished generation have none.
        """
        self.groups[group.group_id] = group

    def set_memory(self, group_id: str, memory: object) -> None:
        """Replace the unrecorded state of a group with epochs, if the group exists."""
        group = self.groups.get(group_id)
        if group is not None:
            cast(_Remembering, group).memory = memory


class GroupProtocol(Protocol):
    """A kind of group: the module `headrace.groups.<type>.protocol`."""

    def replay(self, shard: GroupsState, key: Message, value: Message | None) -> None:
        """Apply a record to its group; a value of None deletes."""

    def on_timer(self, shard: GroupsState, key: TimerKey, now_ms: int) -> Effects[None]:
        """Decide what happens when a timer runs out."""
