"""Group commit: producers that wait together share the fsyncs of a round."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from headrace.broker.flushing import Flusher, Lost
from headrace.errors import KafkaStorageError
from headrace.runtime.durations import Durations
from headrace.storage.log import Log
from headrace.testing.clock import SimulatedClock


class SlowLog:
    """A log whose syncs end at the command of the test."""

    topic_partition = "orders-0"

    def __init__(self, failure: OSError | None = None) -> None:
        self.plans: list[SlowLog] = []
        self.synced = 0
        self.failure = failure

    def plan_flush(self) -> "SlowLog":
        self.plans.append(self)
        return self

    def run(self) -> None:
        if self.failure is not None:
            raise self.failure

    def flushed(self, plan: "SlowLog", now_ms: int) -> None:
        self.synced += 1


class Threads:
    """Runs background work only when released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, function: Callable[[], Any]) -> Any:
        await self.released.wait()
        return function()


class Round:
    """A flusher, and the results that its waiters received."""

    def __init__(self) -> None:
        self.threads = Threads()
        self.failed: list[Log] = []
        self.response: list[Lost] = []
        self.flusher = Flusher(
            asyncio.get_running_loop(),
            self.threads,
            lambda log, error: self.failed.append(log),
            clock=SimulatedClock(),
            durations=Durations(),
        )

    def flush(self, log: SlowLog) -> None:
        self.flusher.flush([cast(Log, log)], self.response.append)

    async def finish(self) -> None:
        self.threads.released.set()
        await self.flusher.stop()


def test_requests_during_a_round_share_the_next() -> None:
    async def scenario() -> tuple[Round, SlowLog]:
        round_, log = Round(), SlowLog()
        round_.flush(log)
        await asyncio.sleep(0)
        for _ in range(10):
            round_.flush(log)
        assert round_.response == []
        await round_.finish()
        return round_, log

    round_, log = asyncio.run(scenario())
    assert round_.response == [{}] * 11
    assert len(log.plans) == 2
    assert log.synced == 2


def test_a_failed_disk_is_reported_and_returned() -> None:
    async def scenario() -> tuple[Round, SlowLog]:
        round_, broken = Round(), SlowLog(OSError(5, "Input/output error"))
        round_.flush(broken)
        await round_.finish()
        return round_, broken

    round_, broken = asyncio.run(scenario())
    assert round_.failed == [cast(Log, broken)]
    (lost,) = round_.response
    assert isinstance(lost[cast(Log, broken)], KafkaStorageError)
    assert broken.synced == 0


class LostLog(SlowLog):
    """A log whose directory is gone."""

    def plan_flush(self) -> SlowLog:
        raise FileNotFoundError(2, "No such file or directory")


def test_a_lost_directory_does_not_stop_the_rounds_of_others() -> None:
    async def scenario() -> tuple[Round, SlowLog]:
        round_, healthy = Round(), SlowLog()
        round_.flush(LostLog())
        await round_.finish()
        round_.flush(healthy)
        await round_.finish()
        return round_, healthy

    round_, healthy = asyncio.run(scenario())
    assert len(round_.response[0]) == 1
    assert round_.response[1] == {}
    assert healthy.synced == 1


def test_a_disk_that_fails_in_a_round_fails_only_its_own_requests() -> None:
    """LOG-19: clients of the other directories notice nothing."""

    async def scenario() -> tuple[Round, SlowLog]:
        round_, healthy = Round(), SlowLog()
        round_.flush(SlowLog(OSError(5, "Input/output error")))
        round_.flush(healthy)
        await round_.finish()
        return round_, healthy

    round_, healthy = asyncio.run(scenario())
    assert [len(lost) for lost in round_.response] == [1, 0]
    assert healthy.synced == 1
