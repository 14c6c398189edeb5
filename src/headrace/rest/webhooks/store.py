"""Subscriptions in a compacted topic, shared by all proxies of a cluster."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from headrace.client.descriptions import NewTopic
from headrace.client.loop_producer import OutgoingRecord
from headrace.errors import HeadraceError
from headrace.http.errors import Unavailable
from headrace.rest.clients import Clients
from headrace.rest.push.entries import Entry
from headrace.rest.push.reading import Reader
from headrace.rest.push.requested import Start, StreamRequest
from headrace.rest.webhooks.subscription import NAME, Subscription

_log = logging.getLogger(__name__)

_POLL_S = 1.0
_AGAIN_S = 2.0
_CONFIGS = {"cleanup.policy": "compact"}
_DECODER = msgspec.json.Decoder(Subscription)

Changed = Callable[[str, Subscription | None], None]


class SubscriptionStore:
    """The content of the topic, kept up to date while `follow` runs."""

    def __init__(self, topic: str, clients: Clients, timeout_s: float, changed: Changed) -> None:
        self.all: dict[str, Subscription] = {}
        self._topic = topic
        self._clients = clients
        self._timeout_s = timeout_s
        self._changed = changed
        self._position = 0
        self._is_current = False
        self._news = asyncio.Condition()

    async def follow(self) -> None:
        """Read the topic without end, with retries while brokers are down."""
        while True:
            try:
                await self._read()
            except HeadraceError as error:
                _log.warning(
                    "subscriptions not read, retrying",
                    extra={"topic": self._topic, "error": str(error)},
                )
                await asyncio.sleep(_AGAIN_S)

    async def current(self) -> dict[str, Subscription]:
        """Wait for the existing subscriptions, and return all of them."""
        await self._until(lambda: self._is_current)
        return self.all

    async def put(self, name: str, given: Subscription | None) -> None:
        """Store a subscription or its deletion, and wait until it is read back."""
        await self.current()
        value = None if given is None else msgspec.json.encode(given)
        sender = self._clients.sender()
        (sent,) = await sender.send(self._topic, [OutgoingRecord(value, name.encode(), 0)])
        if (failure := sent.failure) is not None:
            raise failure
        offset = sent.place[1] or 0
        await self._until(lambda: self._position > offset)

    async def _read(self) -> None:
        await self._clients.admin.run(lambda admin: admin.topics.create([self._new_topic()]))
        reader = Reader(self._clients.consumer_properties(), self._timeout_s)
        try:
            start = Start.EARLIEST if self._position == 0 else Start.LATEST
            offsets = {0: self._position} if self._position else {}
            wanted = StreamRequest(topic=self._topic, start=start, offsets=offsets, partitions=(0,))
            await reader.begin(wanted)
            end = (await reader.ends(self._topic, [0]))[0]
            while True:
                await self._apply(await reader.read(_POLL_S), end)
        finally:
            await asyncio.shield(reader.close())

    def _new_topic(self) -> NewTopic:
        return NewTopic(name=self._topic, partitions=1, configs=_CONFIGS)

    async def _apply(self, entries: list[Entry], end: int) -> None:
        for entry in entries:
            self._position = entry.offset + 1
            self._take(entry)
        # The last records may be compacted away, so an empty read at the end counts as well.
        if not self._is_current and (self._position >= end or not entries):
            self._is_current = True
            for name, subscription in self.all.items():
                self._changed(name, subscription)
        async with self._news:
            self._news.notify_all()

    def _take(self, entry: Entry) -> None:
        name = (entry.key or b"").decode(errors="replace")
        if not NAME.fullmatch(name):
            _log.warning(
                "record with an invalid key among subscriptions",
                extra={"topic": self._topic, "offset": entry.offset},
            )
            return
        if entry.value is None:
            self.all.pop(name, None)
        else:
            try:
                self.all[name] = _DECODER.decode(entry.value)
            except msgspec.MsgspecError as error:
                _log.warning(
                    "subscription not decoded", extra={"subscription": name, "error": str(error)}
                )
                return
        if self._is_current:
            self._changed(name, self.all.get(name))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s), self._news:
                await self._news.wait_for(is_so)
        except TimeoutError:
            raise Unavailable(f"the subscriptions in {self._topic} are not read yet") from None
