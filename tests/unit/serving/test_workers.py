"""So many at once, so many waiting, each for so long."""

import asyncio
import threading
from collections.abc import Iterator

import duckdb
import pytest

from headrace.http.errors import ClientDisconnected
from headrace.serving.errors import Busy, QueryTooSlow
from headrace.serving.workers import Running, WorkerPool


@pytest.fixture
def lane() -> Iterator[WorkerPool]:
    made = WorkerPool("test", threads=1, waiting_max=1)
    yield made
    made.close()


async def test_work_is_done_in_a_thread(lane: WorkerPool) -> None:
    assert await lane.run(lambda _: threading.current_thread().name, 10) != "MainThread"


async def test_queries_beyond_the_queue_are_refused(lane: WorkerPool) -> None:
    release = threading.Event()
    work = [asyncio.ensure_future(lane.run(lambda _: release.wait(30), 30)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await lane.run(lambda _: None, 30)
    release.set()
    assert await asyncio.gather(*work) == [True, True]
    assert await lane.run(lambda _: "there is room again", 30) == "there is room again"


async def test_queries_that_wait_too_long_are_refused(lane: WorkerPool) -> None:
    release = threading.Event()
    first = asyncio.ensure_future(lane.run(lambda _: release.wait(30), 30))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await lane.run(lambda _: None, 0.05)
    release.set()
    assert await first


async def test_a_query_that_takes_too_long_is_interrupted(lane: WorkerPool) -> None:
    def work(running: Running) -> None:
        with duckdb.connect(":memory:") as connection:
            running.begin(connection)
            try:
                connection.execute("SELECT max(i) FROM range(1000000000000) AS t(i)").fetchall()
            finally:
                running.end()

    with pytest.raises(duckdb.InterruptException):
        await lane.run(work, 0.2)


async def test_a_slow_query_is_refused_with_the_limit_and_its_option(lane: WorkerPool) -> None:
    def stopped(running: Running) -> None:
        raise QueryTooSlow("the query was stopped because it took too long")

    with pytest.raises(QueryTooSlow, match=r"longer than 7 seconds.* --timeout"):
        await lane.run(stopped, 7)


async def test_an_uninterruptible_query_is_answered_and_keeps_its_slot(
    lane: WorkerPool,
) -> None:
    release = threading.Event()
    with pytest.raises(QueryTooSlow):
        await lane.run(lambda _: release.wait(30), 0.05)
    assert lane.under_way == 1
    release.set()


class EndlessQuery:
    """Runs until it is interrupted, and reports that."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.is_stopped = threading.Event()

    def __call__(self, running: Running) -> None:
        with duckdb.connect(":memory:") as connection:
            running.begin(connection)
            self.has_begun.set()
            try:
                connection.execute("SELECT max(i) FROM range(1000000000000) AS t(i)").fetchall()
            except duckdb.InterruptException:
                self.is_stopped.set()
            finally:
                running.end()


async def test_a_cancelled_request_stops_its_query(lane: WorkerPool) -> None:
    query = EndlessQuery()
    asked = asyncio.ensure_future(lane.run(query, 60))
    assert await asyncio.to_thread(query.has_begun.wait, 30)
    asked.cancel()
    assert await asyncio.to_thread(query.is_stopped.wait, 30)


async def test_a_client_that_disconnects_stops_its_query(lane: WorkerPool) -> None:
    query = EndlessQuery()

    async def gone() -> None:
        await asyncio.to_thread(query.has_begun.wait, 30)

    with pytest.raises(ClientDisconnected):
        await lane.run(query, 60, gone)
    assert await asyncio.to_thread(query.is_stopped.wait, 30)


async def test_a_query_that_was_stopped_does_not_begin() -> None:
    running = Running(1)
    running.stop()
    with duckdb.connect(":memory:") as connection, pytest.raises(QueryTooSlow):
        running.begin(connection)
