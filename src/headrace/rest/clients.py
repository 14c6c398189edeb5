"""The clients of one identity: producers, admin clients and the settings of consumers."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping

from headrace.client.admin_pool import AdminPool
from headrace.client.loop_producer import RecordSender, WriteCounts
from headrace.rest.settings import RestSettings
from headrace.rest.transactional import TransactionPool

_SENDERS_MAX = 8
"""One for the usual properties, the others for properties that requests set."""
_ADMIN_CLIENTS = 4
_CLIENT_ID = "headrace-rest"


class Clients:
    """The clients of one identity, created on first use."""

    def __init__(
        self,
        settings: RestSettings,
        identity: Mapping[str, str],
        written: WriteCounts | None = None,
    ) -> None:
        self._settings = settings
        self._written = written
        self._identity = identity
        self._senders: OrderedDict[tuple[tuple[str, str], ...], RecordSender] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self.admin = AdminPool(
            self._properties("admin"),
            size=_ADMIN_CLIENTS,
            timeout_s=settings.timeout_s,
            call_timeout_s=settings.timeout_s,
        )
        self.transactions = TransactionPool(
            self._properties("producer"),
            self._properties("consumer"),
            instance=settings.id,
            size=settings.transaction_producers_max,
            timeout_s=settings.timeout_s,
        )
        self._cluster_id: str | None = None

    def sender(self, overrides: Mapping[str, str] | None = None) -> RecordSender:
        """Return the producer with these properties in addition to the usual ones."""
        key = tuple(sorted(overrides.items())) if overrides else ()
        found = self._senders.get(key)
        if found is None:
            found = self._senders[key] = RecordSender(
                {"client.id": _CLIENT_ID, **self._properties("producer"), **(overrides or {})},
                timeout_s=self._settings.timeout_s,
                buffer_bytes_max=self._settings.produce_buffer_bytes,
                name_topic=self._name_topic,
                written=self._written,
            )
            if len(self._senders) > _SENDERS_MAX:
                self._close_oldest()
        elif key:
            self._senders.move_to_end(key)
        return found

    def consumer_properties(self) -> dict[str, str]:
        """Return the properties that consumers of this identity share."""
        return self._properties("consumer")

    async def cluster_id(self) -> str:
        """Return the id of the cluster, which never changes and is read once."""
        if self._cluster_id is None:
            found = await self.admin.run(lambda admin: admin.cluster.metadata([]).cluster_id)
            self._cluster_id = found or ""
        return self._cluster_id

    def forget(self, topic: str) -> None:
        """Drop the cached metadata of a topic."""
        for sender in self._senders.values():
            sender.forget(topic)

    async def close(self) -> None:
        senders = [sender.close() for sender in self._senders.values()]
        await asyncio.gather(
            *senders, self.admin.close(), self.transactions.close(), *self._closing
        )

    async def _name_topic(self, topic: str) -> None:
        await self.admin.run(lambda admin: admin.cluster.name_topic(topic))

    def _properties(self, kind: str) -> dict[str, str]:
        return {**self._settings.properties_of(kind), **self._identity}

    def _close_oldest(self) -> None:
        """Close the least recently used producer with overridden properties."""
        key = next(key for key in self._senders if key)
        task = asyncio.ensure_future(self._senders.pop(key).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
