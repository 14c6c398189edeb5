"""All subscriptions of this proxy, which follow the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from headrace.http.streams import cancelled
from headrace.rest.errors import TOPIC_NOT_FOUND, RestError, unprocessable
from headrace.rest.identities import Identities, Mode
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings
from headrace.rest.webhooks.running import Status, Work
from headrace.rest.webhooks.store import SubscriptionStore
from headrace.rest.webhooks.subscription import NAME, Subscription, check
from headrace.rest.webhooks.targets import AllowedTargets
from headrace.settings.properties import read

_log = logging.getLogger(__name__)


class Subscriptions:
    """Stores subscriptions, and runs them while `running` is open."""

    def __init__(self, settings: RestSettings, identities: Identities, schemas: Schemas) -> None:
        self._settings = settings
        self._identities = identities
        self._schemas = schemas
        self._allowed = AllowedTargets(settings.webhook_targets)
        self._secrets = _secrets(settings)
        self._store: SubscriptionStore | None = None
        self._works: dict[str, tuple[Work, asyncio.Task[None]]] = {}
        self._ended = Status()
        self._changes: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()
        self._is_stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver records while this is open, if any targets are allowed."""
        if not self._allowed or self._settings.client_identity != Mode.PROXY:
            yield
            return
        self._store = SubscriptionStore(
            self._settings.subscriptions_topic,
            self._identities.own(),
            self._settings.timeout_s,
            self._change,
        )
        following = asyncio.create_task(self._store.follow())
        try:
            yield
        finally:
            self._is_stopping = True
            for name in list(self._works):
                self._change(name, None)
            following.cancel()
            await asyncio.wait({following, *self._changes}, timeout=self._settings.timeout_s)

    async def all(self) -> Mapping[str, Subscription]:
        return await self._opened().current()

    async def find(self, name: str) -> Subscription:
        found = (await self.all()).get(name)
        if found is None:
            raise RestError(404, 40410, f"subscription {name[:100]!r} does not exist")
        return found

    async def put(self, name: str, given: Subscription) -> None:
        """Create or change a subscription, whose topics must exist."""
        store = self._opened()
        if not NAME.fullmatch(name):
            raise unprocessable("the name must have 1 to 100 of a-z, A-Z, 0-9, dot, _ and -")
        check(given, self._allowed, self._secrets)
        known = await store.current()
        if name not in known and len(known) >= self._settings.subscriptions_max:
            raise RestError(409, 40910, f"the limit of {len(known)} subscriptions is reached")
        letters = [] if given.dead_letter_topic is None else [given.dead_letter_topic]
        await self._check_topics([*given.topics, *letters])
        if given.formats.require_schema:
            self._schemas.decoder(given.format, is_key=False)
        await store.put(name, msgspec.structs.replace(given, paused_because=None))

    async def set_paused(self, name: str, *, paused: bool) -> Subscription:
        changed = msgspec.structs.replace(await self.find(name), paused=paused, paused_because=None)
        await self._opened().put(name, changed)
        return changed

    async def delete(self, name: str) -> None:
        await self.find(name)
        await self._opened().put(name, None)

    async def status(self, name: str) -> Status:
        """Return the status on this proxy, which covers its own partitions only."""
        subscription = await self.find(name)
        if subscription.paused or name not in self._works:
            return Status(state="paused", paused_because=subscription.paused_because)
        work = self._works[name][0]
        work.status.lag = await work.lag()
        return work.status

    @property
    def running_count(self) -> int:
        return len(self._works)

    def totals(self) -> Status:
        """Add up the counts of all subscriptions since the start, including ended ones."""
        total = Status()
        for one in (self._ended, *(work.status for work, _ in self._works.values())):
            total.add(one)
        return total

    async def _give_up(self, name: str, subscription: Subscription, reason: str) -> None:
        """Pause a subscription on all proxies, unless it has changed."""
        store = self._opened()
        if (await store.current()).get(name) == subscription:
            paused = msgspec.structs.replace(subscription, paused=True, paused_because=reason)
            await store.put(name, paused)

    async def _check_topics(self, names: list[str]) -> None:
        """Reject missing topics without creating them."""
        admin = self._identities.own().admin
        _, outcomes = await admin.run(lambda admin: admin.topics.describe(names))
        for one in outcomes:
            raise RestError(404, TOPIC_NOT_FOUND, f"Topic not found: {one.name} ({one.error})")

    def _opened(self) -> SubscriptionStore:
        if self._settings.client_identity != Mode.PROXY:
            raise _closed("subscriptions require client.identity=proxy")
        if self._store is None:
            raise _closed("this proxy has no allowed targets (webhook.targets)")
        return self._store

    def _change(self, name: str, _subscription: Subscription | None) -> None:
        """Apply a change of the store."""
        task = asyncio.create_task(self._follow(name))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _follow(self, name: str) -> None:
        """Apply changes one at a time, so that the last one wins."""
        async with self._changing:
            if name in self._works:
                work, task = self._works[name]
                await cancelled(task)
                del self._works[name]  # Only now, so that totals never decrease.
                self._ended.add(work.status)
            wanted = None if self._store is None else self._store.all.get(name)
            if wanted is None or wanted.paused or self._is_stopping:
                return
            work = Work(
                name,
                wanted,
                self._identities.own(),
                self._schemas,
                self._allowed,
                self._secrets,
                self._settings.timeout_s,
                partial(self._give_up, name, wanted),
            )
            task = asyncio.create_task(work.run())
            task.add_done_callback(lambda done: _report_end(name, work, done))
            self._works[name] = work, task


def _report_end(name: str, work: Work, task: "asyncio.Task[None]") -> None:
    """Report an end by an error, which is a bug."""
    if not task.cancelled() and (error := task.exception()) is not None:
        work.status.state = "failed"
        work.status.note_failure(f"{type(error).__name__}; see the log of the proxy")
        _log.error("subscription ended", extra={"subscription": name}, exc_info=error)


def _secrets(settings: RestSettings) -> dict[str, str]:
    """Read secrets by name; they are never shown, stored or logged."""
    path = settings.webhook_secrets_file
    return {} if path is None else dict(read(str(Path(path))))


def _closed(reason: str) -> RestError:
    return RestError(403, 40303, reason)
