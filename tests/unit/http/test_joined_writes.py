"""Answers in one write; in several, no byte is lost or out of order."""

import asyncio
from typing import Any

from headrace.http.heads import joined

HEAD, BODY = b"HTTP/1.1 200 OK\r\n\r\n", b"yes"


class Wire(asyncio.Transport):
    """A transport that keeps each piece that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


async def one_round() -> None:
    await asyncio.sleep(0)


async def test_head_and_body_are_one_write_and_further_writes_are_immediate() -> None:
    wire = Wire()
    answer = joined(wire, asyncio.get_running_loop())
    answer.write(HEAD)
    answer.write(BODY)
    answer.write(BODY)
    assert wire.pieces == [HEAD + BODY, BODY]
    await one_round()
    assert wire.pieces == [HEAD + BODY, BODY]


async def test_a_head_is_not_held_until_a_late_body() -> None:
    wire = Wire()
    answer = joined(wire, asyncio.get_running_loop())
    answer.write(HEAD)
    assert wire.pieces == []
    await one_round()
    answer.write(BODY)
    assert wire.pieces == [HEAD, BODY]


async def test_a_large_body_is_not_copied() -> None:
    wire = Wire()
    answer = joined(wire, asyncio.get_running_loop())
    large = bytes(1 << 20)
    answer.write(HEAD)
    answer.write(large)
    assert wire.pieces == [HEAD, large]


async def test_held_bytes_are_written_before_the_end_and_not_after_it() -> None:
    closed, lost = Wire(), Wire()
    loop = asyncio.get_running_loop()
    answer = joined(closed, loop)
    answer.write(HEAD)
    answer.close()
    assert (closed.pieces, answer.is_closing()) == ([HEAD], True)
    joined(lost, loop).write(HEAD)
    lost.close()
    await one_round()
    assert lost.pieces == []
