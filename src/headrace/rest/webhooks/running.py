"""A running subscription: reads as a member of its group, delivers, and commits.

Partitions are delivered in parallel, and records of a partition in order; a retry delays only its
partition. A record is committed after its delivery or its dead letter, so a crash may deliver it
again. If both fail for `pause_after_ms`, the subscription is paused with the reason.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from headrace.client.loop_producer import Headers, OutgoingRecord
from headrace.errors import HeadraceError
from headrace.rest.clients import Clients
from headrace.rest.push.entries import Entry, Showing
from headrace.rest.push.reading import Reader
from headrace.rest.schemas import Schemas
from headrace.rest.webhooks.posting import DeliveryFailed, post, signed
from headrace.rest.webhooks.subscription import Retry, Subscription, filled
from headrace.rest.webhooks.targets import AllowedTargets

_log = logging.getLogger(__name__)

_POLL_S = 1.0
_AGAIN_S = 5.0
_LETTER_MS = 5_000
"""Wait before the retry of a dead letter."""


class Status(msgspec.Struct):
    """The work of this proxy for a subscription since its start."""

    state: str = "starting"
    delivered: int = 0
    filtered: int = 0
    failed_attempts: int = 0
    dead_letters: int = 0
    lag: int | None = None
    paused_because: str | None = None
    last_error: str | None = None
    last_error_at_ms: int | None = None

    def note_failure(self, reason: str) -> None:
        self.failed_attempts += 1
        self.last_error = reason
        self.last_error_at_ms = int(time.time() * 1000)

    def add(self, other: "Status") -> None:
        """Add the counts of another status."""
        self.delivered += other.delivered
        self.filtered += other.filtered
        self.failed_attempts += other.failed_attempts
        self.dead_letters += other.dead_letters


class GivenUp(Exception):
    """Neither the target nor the dead letter topic accepts a batch, which the message names.

    Not a `HeadraceError`, because those are retried.
    """


class Work:
    """One subscription on this proxy; the group shares its partitions with other proxies."""

    def __init__(
        self,
        name: str,
        subscription: Subscription,
        clients: Clients,
        schemas: Schemas,
        allowed: AllowedTargets,
        secrets: Mapping[str, str],
        timeout_s: float,
        pause: Callable[[str], Awaitable[None]],
    ) -> None:
        self.status = Status()
        self._name = name
        self._subscription = subscription
        self._clients = clients
        self._schemas = schemas
        self._allowed = allowed
        self._secrets = secrets
        self._timeout_s = timeout_s
        self._pause = pause
        self._reader: Reader | None = None

    async def run(self) -> None:
        """Deliver until the subscription is paused; restart after other errors."""
        while True:
            try:
                await self._run_until_given_up()
                return
            except HeadraceError as error:
                self.status.state = "failing"
                self.status.note_failure(str(error))
                _log.warning(
                    "subscription failed, restarting it",
                    extra={"subscription": self._name, "error": str(error)},
                )
                await asyncio.sleep(_AGAIN_S)

    async def lag(self) -> int | None:
        """Return the number of waiting records in the partitions of this proxy."""
        return None if self._reader is None else await self._reader.lag()

    async def _run_until_given_up(self) -> None:
        try:
            await self._run()
        except GivenUp as end:
            _log.warning(
                "subscription paused", extra={"subscription": self._name, "reason": str(end)}
            )
            await self._pause(str(end))

    async def _run(self) -> None:
        showing = Showing(self._schemas, self._subscription.formats)
        reader = Reader(
            {
                **self._clients.consumer_properties(),
                "group.id": self._subscription.group_of(self._name),
                "auto.offset.reset": self._subscription.start,
            },
            self._timeout_s,
        )
        try:
            await reader.join(self._subscription.topics)
            self._reader = reader
            self.status.state = "running"
            while True:
                entries = await reader.read(_POLL_S)
                if entries:
                    await asyncio.to_thread(showing.prepare, entries)
                    await self._deliver_while_polling(reader, entries)
                if reader.has_to_commit:
                    await reader.commit()
        finally:
            self._reader = None
            await asyncio.shield(reader.close())

    async def _deliver_while_polling(self, reader: Reader, entries: Sequence[Entry]) -> None:
        """Deliver, and stay a member of the group meanwhile."""
        delivering = asyncio.create_task(self._deliver(reader, entries))
        try:
            await asyncio.wait({delivering}, timeout=_POLL_S)
            while not delivering.done():
                await reader.stay()
                if reader.has_to_commit:
                    await reader.commit()
                await asyncio.wait({delivering}, timeout=_POLL_S)
            await delivering
        finally:
            delivering.cancel()
            await asyncio.wait({delivering})

    async def _deliver(self, reader: Reader, entries: Sequence[Entry]) -> None:
        by_partition: dict[tuple[str, int], list[Entry]] = {}
        for entry in entries:
            by_partition.setdefault((entry.topic, entry.partition), []).append(entry)
        try:
            async with asyncio.TaskGroup() as tasks:
                for records in by_partition.values():
                    tasks.create_task(self._deliver_partition(reader, records))
        except ExceptionGroup as failures:
            given_up, others = failures.split(GivenUp)
            if given_up is None or others is not None:
                raise
            raise given_up.exceptions[0] from None

    async def _deliver_partition(self, reader: Reader, entries: Sequence[Entry]) -> None:
        """Deliver the records of one partition in batches."""
        size = self._subscription.batch_size
        wanted = self._wanted(entries)
        for start in range(0, len(wanted), size):
            batch = wanted[start : start + size]
            await self._deliver_batch(batch)
            last = batch[-1]
            reader.note(last.topic, last.partition, last.offset + 1)
        last = entries[-1]
        reader.note(last.topic, last.partition, last.offset + 1)

    def _wanted(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        condition, formats = self._subscription.condition, self._subscription.formats
        if condition is None:
            return entries
        found = [one for one in entries if one.verdict(formats, condition)]
        self.status.filtered += len(entries) - len(found)
        return found

    async def _deliver_batch(self, batch: Sequence[Entry]) -> None:
        """Deliver a batch or write dead letters; raise `GivenUp` after the time limit."""
        retries = Retries(batch[0], self._subscription.retry)
        while True:
            retries.attempts += 1
            try:
                await self._post(batch)
            except DeliveryFailed as error:
                self.status.note_failure(str(error))
                if await self._wrote_letters(batch, error, retries):
                    return
                await retries.wait(str(error), self._subscription.retry.wait_ms(retries.attempts))
            except HeadraceError as error:
                # A target that was removed from the list may be added again.
                self.status.note_failure(str(error))
                await retries.wait(str(error), self._subscription.retry.max_ms)
            else:
                self.status.delivered += len(batch)
                return

    async def _wrote_letters(
        self, batch: Sequence[Entry], error: DeliveryFailed, retries: "Retries"
    ) -> bool:
        """Write dead letters if configured and due; return whether they were written."""
        topic, attempts = self._subscription.dead_letter_topic, retries.attempts
        if topic is None or not (error.is_final or attempts >= self._subscription.retry.attempts):
            return False
        letters = [_letter(self._name, one, str(error), attempts) for one in batch]
        while (failure := await self._send_letters(topic, letters)) is not None:
            reason = f"a dead letter was not written: {failure}"
            self.status.note_failure(reason)
            await retries.wait(reason, _LETTER_MS)
        self.status.dead_letters += len(batch)
        return True

    async def _send_letters(
        self, topic: str, letters: Sequence[OutgoingRecord]
    ) -> HeadraceError | None:
        try:
            sent = await self._clients.sender().send(topic, letters)
        except HeadraceError as error:
            return error
        return next((one.failure for one in sent if one.failure is not None), None)

    async def _post(self, batch: Sequence[Entry]) -> None:
        given = self._subscription
        shown = b",".join([one.shown(given.formats) for one in batch])
        body = b'{"subscription":"%b","records":[%b]}' % (self._name.encode(), shown)
        headers = filled(given.headers, self._secrets)
        headers["X-Headrace-Subscription"] = self._name
        secret = None if given.secret is None else self._secrets.get(given.secret)
        if given.secret is not None and secret is None:
            raise DeliveryFailed(f"webhook.secrets.file has no secret {given.secret!r}")
        if secret is not None:
            now_s = int(time.time())
            headers["X-Headrace-Timestamp"] = str(now_s)
            headers["X-Headrace-Signature"] = signed(secret, now_s, body)
        await post(given.address, headers, body, self._allowed, given.timeout_ms / 1000)


class Retries:
    """The attempts and the time limit of a batch."""

    def __init__(self, first: Entry, retry: Retry) -> None:
        self.attempts = 0
        self._first = first
        self._seconds_max = retry.pause_after_ms / 1000
        self._began = time.monotonic()

    async def wait(self, reason: str, wait_ms: int) -> None:
        """Wait before the next attempt; raise `GivenUp` after the time limit."""
        spent = time.monotonic() - self._began
        if spent >= self._seconds_max:
            raise GivenUp(
                f"{self._first.topic}-{self._first.partition} at offset {self._first.offset} was"
                f" not delivered by {self.attempts} attempts in {spent:.0f} seconds: {reason}"
            )
        await asyncio.sleep(min(wait_ms / 1000, self._seconds_max - spent))


def _letter(name: str, entry: Entry, reason: str, attempts: int) -> OutgoingRecord:
    """Return the record with headers for its origin and the error."""
    headers: Headers = [
        *entry.headers,
        ("headrace.dead.subscription", name),
        ("headrace.dead.topic", entry.topic),
        ("headrace.dead.partition", str(entry.partition)),
        ("headrace.dead.offset", str(entry.offset)),
        ("headrace.dead.attempts", str(attempts)),
        ("headrace.dead.reason", reason),
    ]
    return OutgoingRecord(entry.value, entry.key, headers=headers)
