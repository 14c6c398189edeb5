"""Answers in pieces."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from headrace.http.streams import DuplexResponse, Stalled, event, taken


async def pieces() -> AsyncGenerator[bytes, None]:
    yield b"one"
    yield b"two"


async def test_pieces_are_sent_and_the_body_is_not_read() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the body is left to the maker of the pieces")

    await DuplexResponse(pieces(), "application/json")({"type": "http"}, receive, send)
    assert [one.get("body") for one in sent] == [None, b"one", b"two", b""]
    assert (b"content-type", b"application/json") in sent[0]["headers"]
    assert not any(name == b"content-length" for name, _ in sent[0]["headers"])


def test_an_event_has_a_line_per_line_of_its_data() -> None:
    found = event(b"two\nlines", id="7", name="note")
    assert found == b"event: note\nid: 7\ndata: two\ndata: lines\n\n"


def test_an_event_without_data_has_an_empty_line() -> None:
    assert event(b"") == b"data: \n\n"


async def test_a_client_that_reads_nothing_is_stalled() -> None:
    with pytest.raises(Stalled):
        await taken(asyncio.Event().wait(), 0)


async def test_a_send_within_the_time_limit_returns_its_result() -> None:
    assert await taken(asyncio.sleep(0, "taken"), 30) == "taken"
