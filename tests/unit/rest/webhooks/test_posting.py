"""Signatures of deliveries, and heads of answers."""

import asyncio
import hashlib
import hmac

import pytest

from headrace.rest.webhooks.posting import _is_final, _status, signed


def test_a_signature_covers_time_and_body() -> None:
    expected = hmac.new(b"secret", b"17.{}", hashlib.sha256).hexdigest()
    assert signed("secret", 17, b"{}") == f"sha256={expected}"


@pytest.mark.parametrize(
    ("status", "is_final"),
    [(302, True), (400, True), (404, True), (408, False), (429, False), (500, False), (503, False)],
)
def test_rejections_are_final_and_temporary_failures_are_not(status: int, is_final: bool) -> None:
    assert _is_final(status) is is_final


def answer(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1_000)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_an_announcement_is_not_the_answer() -> None:
    found = answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nA: b\r\n\r\n")
    assert await _status(found) == 204


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 5_000, b"HTTP/1.1 100 C\r\n\r\n" * 9),
    ],
)
async def test_an_invalid_answer_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, asyncio.IncompleteReadError)):
        await _status(answer(data))
