"""One round over many sockets: each is served, whatever becomes of the others."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest

from headrace.broker import ready_sockets
from headrace.broker.ready_sockets import ReadySockets

SECONDS_MAX = 20


class Rounds:
    """Notes which rounds there were."""

    def __init__(self) -> None:
        self.response: list[str] = []

    def begin(self) -> None:
        self.response.append("begin")

    def end(self) -> None:
        self.response.append("end")


class Pairs:
    """Sockets that become readable at the command of the test."""

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


async def test_several_ready_sockets_are_served_in_a_round(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fds = [pairs.add() for _ in range(5)]
    pairs.all_send()
    for fd in fds:
        ready.add(fd, reader(fd, read))
    await eventually(lambda: len(read) == 5)
    assert sorted(read) == sorted(fds)
    assert rounds.response == ["begin", "end"]
    ready.close()


async def test_a_single_socket_is_served_without_a_round(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fd = pairs.add()
    pairs.all_send()
    ready.add(fd, reader(fd, read))
    await eventually(lambda: read == [fd])
    assert rounds.response == []
    ready.close()


async def test_a_socket_removed_by_another_is_not_served(pairs: Pairs) -> None:
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


async def test_sockets_beyond_the_size_of_a_round_take_turns(pairs: Pairs) -> None:
    rounds, read = Rounds(), list[int]()
    ready = ReadySockets(asyncio.get_running_loop(), rounds)
    fds = [pairs.add() for _ in range(300)]
    pairs.all_send()
    for fd in fds:
        ready.add(fd, reader(fd, read))
    await eventually(lambda: len(read) == 300)
    assert sorted(read) == sorted(fds)
    assert rounds.response == ["begin", "end"] * 2
    ready.close()


async def test_a_slow_round_continues_in_the_next_turn_of_the_loop(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready_sockets, "_ROUND_NS", 0)
    monkeypatch.setattr(ready_sockets, "_SOCKETS_PER_LOOK", 1)
    rounds, read = Rounds(), list[int]()
    loop = asyncio.get_running_loop()
    ready = ReadySockets(loop, rounds)
    fds = [pairs.add() for _ in range(4)]
    pairs.all_send()
    others: list[int] = []

    def reader_and_task(fd: int) -> Callable[[], None]:
        read_one = reader(fd, read)

        def on_readable() -> None:
            read_one()
            loop.call_soon(lambda: others.append(len(read)))

        return on_readable

    for fd in fds:
        ready.add(fd, reader_and_task(fd))
    await eventually(lambda: len(others) == 4)
    assert sorted(read) == sorted(fds)
    assert others == [1, 2, 3, 4]  # A task of the loop ran after each socket.
    ready.close()


async def test_no_socket_can_be_added_after_the_end(pairs: Pairs) -> None:
    ready = ReadySockets(asyncio.get_running_loop(), Rounds())
    ready.close()
    with pytest.raises(ValueError, match="closed epoll"):
        ready.add(pairs.add(), lambda: None)
