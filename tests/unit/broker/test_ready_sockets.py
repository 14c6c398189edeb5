"""One round over many sockets: each is served, whatever becomes of the others."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest

from headrace.broker.ready_sockets import ReadySockets

SECONDS_MAX = 20


class Rounds:
    """Notes which rounds there were."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self) -> None:
        self.told.append("begin")

    def end(self) -> None:
        self.told.append("end")


class Pairs:
    """Sockets that have something to read when the test says so."""

    def __init__(self) -> None:
        self._ends: list[tuple[socket.socket, socket.socket]] = []

    def add(self) -> int:
        ours, theirs = socket.socketpair()
        self._ends.append((ours, theirs))
        return ours.fileno()

    def all_send(self) -> None:
        for _, theirs in self._ends:
            theirs.send(b"x")

    def close(self) -> None:
        for ours, theirs in self._ends:
            ours.close()
            theirs.close()


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    made = Pairs()
    yield made
    made.close()


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not is_so():
            await asyncio.sleep(0)


def reader(fd: int, read: list[int]) -> Callable[[], None]:
    def on_readable() -> None:
        read.append(fd)
        with socket.socket(fileno=fd) as sock:
            sock.recv(1)
            sock.detach()

    return on_readable


async def test_many_that_are_ready_are_a_round(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fds = [pairs.add() for _ in range(5)]
    pairs.all_send()
    for fd in fds:
        ready.add(fd, reader(fd, read))
    await eventually(lambda: len(read) == 5)
    assert sorted(read) == sorted(fds)
    assert rounds.told == ["begin", "end"]
    ready.close()


async def test_one_alone_needs_no_round(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fd = pairs.add()
    pairs.all_send()
    ready.add(fd, reader(fd, read))
    await eventually(lambda: read == [fd])
    assert rounds.told == []
    ready.close()


async def test_one_that_is_removed_by_another_is_not_served(pairs: Pairs) -> None:
    """Its descriptor is closed, and its number may be another file's."""
    ready = ReadySockets(asyncio.get_running_loop(), Rounds())
    fds = [pairs.add() for _ in range(2)]
    read: list[int] = []

    def remove_the_other(this: int) -> Callable[[], None]:
        def on_readable() -> None:
            read.append(this)
            for fd in fds:
                ready.remove(fd)

        return on_readable

    pairs.all_send()
    for fd in fds:
        ready.add(fd, remove_the_other(fd))
    await eventually(lambda: bool(read))
    await asyncio.sleep(0)
    assert len(read) == 1
    ready.close()


async def test_more_than_fit_into_a_round_are_served_by_turns(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fds = [pairs.add() for _ in range(300)]
    pairs.all_send()
    for fd in fds:
        ready.add(fd, reader(fd, read))
    await eventually(lambda: len(read) == 300)
    assert sorted(read) == sorted(fds)
    assert rounds.told == ["begin", "end"] * 2
    ready.close()


async def test_after_the_end_nothing_is_watched(pairs: Pairs) -> None:
    ready = ReadySockets(asyncio.get_running_loop(), Rounds())
    ready.close()
    with pytest.raises(ValueError, match="closed epoll"):
        ready.add(pairs.add(), lambda: None)
