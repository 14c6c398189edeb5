"""Answers in pieces."""

from collections.abc import AsyncGenerator
from typing import Any

from headrace.http.streams import DuplexResponse


async def pieces() -> AsyncGenerator[bytes, None]:
    yield b"one"
    yield b"two"


async def test_pieces_are_sent_and_the_request_is_left_alone() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the body belongs to who makes the pieces")

    await DuplexResponse(pieces(), "application/json")({"type": "http"}, receive, send)
    assert [one.get("body") for one in sent] == [None, b"one", b"two", b""]
    assert (b"content-type", b"application/json") in sent[0]["headers"]
    assert not any(name == b"content-length" for name, _ in sent[0]["headers"])
