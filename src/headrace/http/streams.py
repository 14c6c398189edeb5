"""Answers in pieces, while the request itself may still be coming."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class DuplexResponse(Response):
    """An answer in pieces that leaves the request's body to who makes the pieces.

    Starlette's own streaming reads the connection to see the client go, and so would take parts
    of a body that is still being read.
    """

    def __init__(self, pieces: AsyncGenerator[bytes, None], media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._pieces) as pieces:  # Also when the client has gone.
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
