"""`Admin` for asyncio: the same parts and calls, with the same arguments and typed results."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from headrace.client.acls import Acls
from headrace.client.admin import Admin
from headrace.client.admin_pool import AdminPool
from headrace.client.async_thread import Awaited
from headrace.client.configs import Configs
from headrace.client.elections import Elections
from headrace.client.groups import Groups
from headrace.client.nodes import Nodes
from headrace.client.partitions import Partitions
from headrace.client.properties import Properties
from headrace.client.quotas import Quotas
from headrace.client.reassignments import Reassignments
from headrace.client.tokens import Tokens
from headrace.client.topics import Topics
from headrace.client.transactions import Transactions
from headrace.client.users import Users

Part = TypeVar("Part")
T = TypeVar("T")


class AsyncPart(Generic[Part]):
    """A part of `AsyncAdmin` under the name of the same part of `Admin`."""

    def __init__(self, pool: AdminPool | None = None, name: str = "") -> None:
        self._pool = pool
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, admin: "AsyncAdmin", owner: type | None = None) -> Self:
        return type(self)(admin.pool, self._name)

    async def call(self, function: Callable[[Part], T]) -> T:
        assert self._pool is not None, "a part is used through its admin client"
        return await self._pool.run(lambda admin: function(getattr(admin, self._name)))


class AsyncTopics(AsyncPart[Topics]):
    all = Awaited(Topics.all)
    describe = Awaited(Topics.describe)
    create = Awaited(Topics.create)
    defaults = Awaited(Topics.defaults)
    delete = Awaited(Topics.delete)
    delete_by_id = Awaited(Topics.delete_by_id)
    add_partitions = Awaited(Topics.add_partitions)


class AsyncConfigs(AsyncPart[Configs]):
    names = Awaited(Configs.names)
    describe = Awaited(Configs.describe)
    values = Awaited(Configs.values)
    alter = Awaited(Configs.alter)


class AsyncAcls(AsyncPart[Acls]):
    find = Awaited(Acls.find)
    create = Awaited(Acls.create)
    delete = Awaited(Acls.delete)


class AsyncReassignments(AsyncPart[Reassignments]):
    under_way = Awaited(Reassignments.under_way)
    alter = Awaited(Reassignments.alter)


class AsyncElections(AsyncPart[Elections]):
    hold = Awaited(Elections.hold)


class AsyncQuotas(AsyncPart[Quotas]):
    describe = Awaited(Quotas.describe)
    alter = Awaited(Quotas.alter)


class AsyncUsers(AsyncPart[Users]):
    describe = Awaited(Users.describe)
    set_password = Awaited(Users.set_password)
    remove = Awaited(Users.remove)


class AsyncTokens(AsyncPart[Tokens]):
    create = Awaited(Tokens.create)
    describe = Awaited(Tokens.describe)
    renew = Awaited(Tokens.renew)
    expire = Awaited(Tokens.expire)


class AsyncPartitions(AsyncPart[Partitions]):
    of = Awaited(Partitions.of)
    offsets = Awaited(Partitions.offsets)
    delete_records_before = Awaited(Partitions.delete_records_before)
    producers = Awaited(Partitions.producers)
    batch_at = Awaited(Partitions.batch_at)
    batches_from = Awaited(Partitions.batches_from)


class AsyncNodes(AsyncPart[Nodes]):
    describe = Awaited(Nodes.describe)
    log_directories = Awaited(Nodes.log_directories)
    brokers = Awaited(Nodes.brokers)
    unregister = Awaited(Nodes.unregister)
    add_controller = Awaited(Nodes.add_controller)
    remove_controller = Awaited(Nodes.remove_controller)


class AsyncGroups(AsyncPart[Groups]):
    all = Awaited(Groups.all)
    describe = Awaited(Groups.describe)
    describe_all = Awaited(Groups.describe_all)
    committed = Awaited(Groups.committed)
    lag = Awaited(Groups.lag)
    commit = Awaited(Groups.commit)
    reset = Awaited(Groups.reset)
    delete = Awaited(Groups.delete)
    delete_offsets = Awaited(Groups.delete_offsets)
    coordinator_of = Awaited(Groups.coordinator_of)


class AsyncTransactions(AsyncPart[Transactions]):
    find = Awaited(Transactions.find)
    describe = Awaited(Transactions.describe)
    terminate = Awaited(Transactions.terminate)
    abort_at = Awaited(Transactions.abort_at)
    coordinator_of = Awaited(Transactions.coordinator_of)


class AsyncAdmin:
    """`Admin` for asyncio; its calls run one after the other."""

    topics = AsyncTopics()
    configs = AsyncConfigs()
    acls = AsyncAcls()
    reassignments = AsyncReassignments()
    elections = AsyncElections()
    quotas = AsyncQuotas()
    tokens = AsyncTokens()
    users = AsyncUsers()
    partitions = AsyncPartitions()
    nodes = AsyncNodes()
    groups = AsyncGroups()
    transactions = AsyncTransactions()

    def __init__(self, properties: Properties, timeout_s: float = 30.0) -> None:
        self.pool = AdminPool(properties, size=1, timeout_s=timeout_s)

    async def close(self) -> None:
        await self.pool.run(Admin.close)
        await self.pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
