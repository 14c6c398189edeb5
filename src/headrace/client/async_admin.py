"""The administration of a cluster for asyncio: the same parts, every call in a thread.

`await admin.topics.create([...])` is `Admin(...).topics.create([...])`, with the same arguments and
the same typed results; each part lists the calls that it takes over.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

from headrace.client.acls import Acls
from headrace.client.admin import Admin
from headrace.client.async_thread import ClientThread
from headrace.client.configs import Configs
from headrace.client.elections import Elections
from headrace.client.groups import Groups
from headrace.client.nodes import Nodes
from headrace.client.partitions import Partitions
from headrace.client.properties import Properties
from headrace.client.quotas import Quotas
from headrace.client.reassignments import Reassignments
from headrace.client.topics import Topics
from headrace.client.transactions import Transactions

Part = TypeVar("Part")
P = ParamSpec("P")
T = TypeVar("T")


class Awaited(Generic[Part, P, T]):
    """A call of a part of `Admin`, to be awaited on its asyncio twin."""

    def __init__(self, call: Callable[Concatenate[Part, P], T]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(
        self, twin: "AsyncPart[Part]", owner: type | None = None
    ) -> Callable[P, Awaitable[T]]:
        def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return twin.thread.start(self._call, twin.part, *args, **kwargs)

        return run


class AsyncPart(Generic[Part]):
    """A part of `Admin` whose calls are awaited."""

    def __init__(self, thread: ClientThread, part: Part) -> None:
        self.thread = thread
        self.part = part


class AsyncTopics(AsyncPart[Topics]):
    """List, describe, create, delete topics; add partitions."""

    all = Awaited(Topics.all)
    describe = Awaited(Topics.describe)
    create = Awaited(Topics.create)
    defaults = Awaited(Topics.defaults)
    delete = Awaited(Topics.delete)
    delete_by_id = Awaited(Topics.delete_by_id)
    add_partitions = Awaited(Topics.add_partitions)


class AsyncConfigs(AsyncPart[Configs]):
    """Describe and alter settings."""

    names = Awaited(Configs.names)
    describe = Awaited(Configs.describe)
    alter = Awaited(Configs.alter)


class AsyncAcls(AsyncPart[Acls]):
    """Find, add and remove access rules."""

    find = Awaited(Acls.find)
    create = Awaited(Acls.create)
    delete = Awaited(Acls.delete)


class AsyncReassignments(AsyncPart[Reassignments]):
    """Move partitions; those that are being moved."""

    under_way = Awaited(Reassignments.under_way)
    alter = Awaited(Reassignments.alter)


class AsyncElections(AsyncPart[Elections]):
    """Let preferred replicas lead, or any that is left."""

    hold = Awaited(Elections.hold)


class AsyncQuotas(AsyncPart[Quotas]):
    """What users, clients and addresses may use."""

    describe = Awaited(Quotas.describe)
    alter = Awaited(Quotas.alter)


class AsyncPartitions(AsyncPart[Partitions]):
    """What leaders know: offsets, producers, batches; delete records."""

    of = Awaited(Partitions.of)
    offsets = Awaited(Partitions.offsets)
    delete_records_before = Awaited(Partitions.delete_records_before)
    producers = Awaited(Partitions.producers)
    batch_at = Awaited(Partitions.batch_at)


class AsyncNodes(AsyncPart[Nodes]):
    """Brokers, quorum, features, log directories."""

    describe = Awaited(Nodes.describe)
    log_directories = Awaited(Nodes.log_directories)
    unregister = Awaited(Nodes.unregister)


class AsyncGroups(AsyncPart[Groups]):
    """List, describe, reset and delete groups; their lag."""

    all = Awaited(Groups.all)
    describe = Awaited(Groups.describe)
    committed = Awaited(Groups.committed)
    lag = Awaited(Groups.lag)
    reset = Awaited(Groups.reset)
    delete = Awaited(Groups.delete)
    delete_offsets = Awaited(Groups.delete_offsets)
    coordinator_of = Awaited(Groups.coordinator_of)


class AsyncTransactions(AsyncPart[Transactions]):
    """List and describe transactions, abort hanging ones."""

    find = Awaited(Transactions.find)
    describe = Awaited(Transactions.describe)
    terminate = Awaited(Transactions.terminate)
    abort_at = Awaited(Transactions.abort_at)
    coordinator_of = Awaited(Transactions.coordinator_of)


class AsyncAdmin:
    """`Admin` for asyncio; its calls follow each other."""

    def __init__(self, properties: Properties, timeout_s: float = 30.0) -> None:
        self._admin = Admin(properties, timeout_s=timeout_s)
        self._thread = ClientThread("headrace-admin")

    @cached_property
    def topics(self) -> AsyncTopics:
        return AsyncTopics(self._thread, self._admin.topics)

    @cached_property
    def configs(self) -> AsyncConfigs:
        return AsyncConfigs(self._thread, self._admin.configs)

    @cached_property
    def acls(self) -> AsyncAcls:
        return AsyncAcls(self._thread, self._admin.acls)

    @cached_property
    def reassignments(self) -> AsyncReassignments:
        return AsyncReassignments(self._thread, self._admin.reassignments)

    @cached_property
    def elections(self) -> AsyncElections:
        return AsyncElections(self._thread, self._admin.elections)

    @cached_property
    def quotas(self) -> AsyncQuotas:
        return AsyncQuotas(self._thread, self._admin.quotas)

    @cached_property
    def partitions(self) -> AsyncPartitions:
        return AsyncPartitions(self._thread, self._admin.partitions)

    @cached_property
    def nodes(self) -> AsyncNodes:
        return AsyncNodes(self._thread, self._admin.nodes)

    @cached_property
    def groups(self) -> AsyncGroups:
        return AsyncGroups(self._thread, self._admin.groups)

    @cached_property
    def transactions(self) -> AsyncTransactions:
        return AsyncTransactions(self._thread, self._admin.transactions)

    async def close(self) -> None:
        await self._thread.run(self._admin.close)
        self._thread.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
