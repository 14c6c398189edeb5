"""Server-Sent Events: a stream as an HTTP answer without end.

An event's `id` is the client's position after it. A browser that reconnects sends it as
`Last-Event-ID` and resumes with the next record. If the filter accepts no records, heartbeats carry
the position.
"""

from collections.abc import AsyncGenerator

import msgspec
from starlette.types import Scope

from headrace.errors import HeadraceError
from headrace.http.errors import HttpError
from headrace.http.streams import HEARTBEAT, Stalled, event, sent
from headrace.rest.errors import body_of, of_client
from headrace.rest.push.delivering import Lifetime, Pieces
from headrace.rest.push.feeds import Feed
from headrace.rest.push.requested import StreamRequest
from headrace.rest.settings import RestSettings


def heartbeat(position: str, last: str) -> bytes:
    """Return a comment, or an id without data, which only updates a browser's last id."""
    return HEARTBEAT if position == last else b"id: %b\n\n" % position.encode()


def end(error: HttpError) -> bytes:
    """Return the last event, with the reason for the end."""
    return event(msgspec.json.encode(body_of(error)), name="end")


async def events(
    scope: Scope, feed: Feed, pieces: Pieces, request: StreamRequest, settings: RestSettings
) -> AsyncGenerator[bytes, None]:
    """Yield the events of one client until its time is over or the feed fails."""
    lifetime = Lifetime(settings.push_heartbeat_ms, settings.streaming_connection_max_duration_ms)
    formats, last = request.formats, ""
    try:
        while not lifetime.is_over:
            piece = await pieces.next(lifetime.wait_s())
            if piece.wanted:
                yield b"".join([event(one.shown(formats), id) for one, id in piece.wanted])
                last = piece.wanted[-1][1]
                if request.group is not None:
                    await sent(scope, settings.push_stall_ms / 1000)
            elif not piece.entries:
                yield heartbeat(piece.position, last)
                last = piece.position
            for entry, _ in piece.entries:
                feed.delivered(entry.partition, entry.offset)
    except Stalled:
        raise
    except HeadraceError as error:
        yield end(of_client(error))
