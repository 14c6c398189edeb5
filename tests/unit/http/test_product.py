"""A small product built of the kit: pages, files, events, roles, a prefix, and common paths."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from headrace.http.access import Authentication, KnownToken, Role, Roles, TokenFile
from headrace.http.errors import JSON, Unavailable
from headrace.http.metrics import HttpMetrics, http_families
from headrace.http.operations import operation, operations_of
from headrace.http.pages import StaticFiles, html_page
from headrace.http.product import Product
from headrace.http.streams import EventStreams, event, with_heartbeats

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "http-kit.md"
IMPORT_MAP = '{"imports":{"app":"/static/app.js"}}'
SCRIPT = "export const text = 'a script';\n" * 100


class Notes:
    """Notes that viewers read, editors write, and everyone may watch."""

    def __init__(self) -> None:
        self.notes = ["first"]
        self.streams = EventStreams()
        self.heartbeat_s = 60.0
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_source_closed = False

    @operation("GET /notes", answer=list[str])
    async def all(self, request: Request) -> Response:
        """List notes."""
        return Response(msgspec.json.encode(self.notes), media_type=JSON)

    @operation("POST /notes", role=Role.EDITOR)
    async def add(self, request: Request) -> Response:
        """Add a note."""
        self.notes.append((await request.body()).decode())
        return Response(status_code=204)

    @operation("GET /page", answer_types=("text/html",))
    async def page(self, request: Request) -> Response:
        """Show the notes."""
        script = f'<script type="importmap">{IMPORT_MAP}</script>'
        return html_page(f"<!doctype html>{script}", inline_scripts=[IMPORT_MAP])

    @operation("GET /events", answer_types=("text/event-stream",))
    async def watch(self, request: Request) -> Response:
        """Watch for new notes."""
        return self.streams.answer(with_heartbeats(self._source(), self.heartbeat_s))

    async def _source(self) -> AsyncIterator[bytes]:
        try:
            while (found := await self.events.get()) is not None:
                yield found
        finally:
            self.is_source_closed = True


def product_of(notes: Notes, files: StaticFiles | None = None, **given: Any) -> Product:
    metrics = HttpMetrics()
    return Product(
        title="Notes",
        operations=[*operations_of(notes), *(files.operations() if files else ())],
        families=lambda: http_families("notes", metrics),
        metrics=metrics,
        on_stop=notes.streams.stop,
        **given,
    )


def client(product: Product, **given: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(product, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://notes", **given)


def authentication_of(*names: str) -> Authentication:
    return Authentication(
        TokenFile(tuple(KnownToken(one, sha256(one.encode()).digest()) for one in names), False)
    )


def as_user(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


# --- common paths ---------------------------------------------------------------------------------


async def test_the_example_of_the_page_works() -> None:
    example = PAGE.read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, str(PAGE), "exec"), names)
    async with client(names["application"]()) as http:
        assert (await http.get("/greetings/ada")).json() == {"text": "hello ada"}
        assert (await http.get("/greetings/nemo")).status_code == 404
        described = (await http.get("/openapi.json")).json()["paths"]["/greetings/{name}"]
        assert described["get"]["summary"] == "Greet a person."
        assert "greetings_answers_total" in (await http.get("/metrics")).text


async def test_a_product_without_checks_is_healthy_and_ready() -> None:
    async with client(product_of(Notes())) as http:
        assert (await http.get("/health")).content == b'{"status":"healthy"}'
        assert (await http.get("/ready")).content == b'{"status":"ready"}'


async def test_a_failed_check_is_the_answer() -> None:
    async def check() -> None:
        raise Unavailable("not yet", retry_after_s=7)

    async with client(product_of(Notes(), check_ready=check)) as http:
        answer = await http.get("/ready")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")


async def test_options_and_wrong_methods_name_the_allowed_ones() -> None:
    async with client(product_of(Notes())) as http:
        options, wrong = await http.options("/notes"), await http.delete("/notes")
    assert (options.status_code, wrong.status_code) == (204, 405)
    assert options.headers["allow"] == wrong.headers["allow"] == "GET, HEAD, OPTIONS, POST"


async def test_head_is_answered_with_the_headers_of_get() -> None:
    async with client(product_of(Notes())) as http:
        got, asked = await http.get("/notes"), await http.head("/notes")
    assert (asked.status_code, asked.headers) == (200, got.headers)


async def test_a_prefix_is_before_every_path() -> None:
    product = product_of(Notes(), prefix="/apps/notes", authentication=authentication_of("ada"))
    async with client(product) as http:
        found = await http.get("/apps/notes/notes", headers=as_user("ada"))
        assert found.json() == ["first"]
        assert (await http.get("/notes", headers=as_user("ada"))).status_code == 404
        assert (await http.get("/apps/notes/health")).status_code == 200


async def test_listed_origins_are_answered_with_permission() -> None:
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "PUT"}
    async with client(product_of(Notes(), origins=["https://a.example"])) as http:
        answer = await http.options("/notes", headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://a.example"


# --- roles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "statuses"), [("ada", [200, 204]), ("bob", [200, 403]), ("eve", [403, 403])]
)
async def test_an_operation_needs_its_role(name: str, statuses: list[int]) -> None:
    roles = Roles({"ada": Role.EDITOR, "bob": Role.VIEWER}, default=None)
    product = product_of(
        Notes(), authentication=authentication_of("ada", "bob", "eve"), roles=roles
    )
    async with client(product, headers=as_user(name)) as http:
        answers = [await http.get("/notes"), await http.post("/notes", content=b"next")]
    assert [one.status_code for one in answers] == statuses


# --- pages and files ------------------------------------------------------------------------------


async def test_a_page_may_run_its_own_scripts_and_no_others() -> None:
    async with client(product_of(Notes())) as http:
        answer = await http.get("/page")
    policy = answer.headers["content-security-policy"]
    directives = dict(one.split(" ", 1) for one in policy.split("; "))
    digest = base64.b64encode(hashlib.sha256(IMPORT_MAP.encode()).digest()).decode()
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == f"'self' 'sha256-{digest}'"
    assert directives["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def files(tmp_path: Path) -> StaticFiles:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.js").write_text(SCRIPT)
    (tmp_path / "small.css").write_text("body {}")
    return StaticFiles(tmp_path)


async def test_a_file_is_compressed_typed_and_cached_for_good(files: StaticFiles) -> None:
    async with client(product_of(Notes(), files)) as http:
        answer = await http.get(files.url("app/main.js"))
        plain = await http.get(files.url("app/main.js"), headers={"Accept-Encoding": "br"})
        small = await http.get(files.url("small.css"))
    assert answer.text == plain.text == SCRIPT
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["etag"] != plain.headers["etag"]
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_known_file_is_not_sent_again(files: StaticFiles, encoding: str) -> None:
    async with client(product_of(Notes(), files), headers={"Accept-Encoding": encoding}) as http:
        first = await http.get(files.url("app/main.js"))
        known = {"If-None-Match": f'"other", {first.headers["etag"]}'}
        again = await http.get(files.url("app/main.js"), headers=known)
        other = await http.get(files.url("app/main.js"), headers={"If-None-Match": '"other"'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [("gzip;q=0, br", False), ("gzip; q=0.5", True), ("*", True), ("gzip;q=0.0", False)],
)
async def test_compression_follows_the_accepted_encodings(
    files: StaticFiles, accepted: str, is_compressed: bool
) -> None:
    async with client(product_of(Notes(), files)) as http:
        answer = await http.get(files.url("app/main.js"), headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) is is_compressed


@pytest.mark.parametrize("path", ["/../small.css", "/app/%2e%2e/small.css", "/app%2Fmain.js", ""])
async def test_only_the_paths_of_files_exist(files: StaticFiles, path: str) -> None:
    root = files.url("small.css").removesuffix("/small.css")
    async with client(product_of(Notes(), files)) as http:
        assert (await http.get(root + path)).status_code == 404


async def test_files_are_not_part_of_the_description(files: StaticFiles) -> None:
    async with client(product_of(Notes(), files)) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    assert not [path for path in paths if path.startswith("/static")]


def test_changed_files_have_new_paths(files: StaticFiles, tmp_path: Path) -> None:
    (tmp_path / "small.css").write_text("body { margin: 0 }")
    changed = StaticFiles(tmp_path)
    assert changed.url("app/main.js") != files.url("app/main.js")


# --- events ---------------------------------------------------------------------------------------


class Watching:
    """A request for events; a test reads its messages and ends it."""

    def __init__(self, product: Product) -> None:
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._body: Sequence[Any] = [{"type": "http.request", "body": b"", "more_body": False}]
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/events",
            "raw_path": b"/events",
            "query_string": b"",
            "headers": [],
        }
        self.task = asyncio.create_task(product(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._body:
            message, *self._body = self._body
            return message
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message.get("body") != b"" or not message["more_body"]:  # Empty pieces wait for room.
            await self.sent.put(message)

    async def next(self) -> Any:
        async with asyncio.timeout(30):
            return await self.sent.get()

    async def begin(self) -> Any:
        start, heartbeat = await self.next(), await self.next()
        assert heartbeat["body"] == b":\n\n"
        return dict(start["headers"])


async def test_events_are_sent_as_they_arrive_until_their_end() -> None:
    notes = Notes()
    watching = Watching(product_of(notes))
    headers = await watching.begin()
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"
    await notes.events.put(event(b"two\nlines", id="7", name="note"))
    assert (await watching.next())["body"] == b"event: note\nid: 7\ndata: two\ndata: lines\n\n"
    await notes.events.put(None)
    assert await watching.next() == {"type": "http.response.body", "body": b"", "more_body": False}
    await watching.task


async def test_a_disconnect_closes_the_source_of_the_events() -> None:
    notes = Notes()
    watching = Watching(product_of(notes))
    await watching.begin()
    watching.gone.set()
    await watching.task
    assert notes.is_source_closed
    assert watching.sent.empty()


async def test_a_stop_ends_the_answer() -> None:
    notes = Notes()
    product = product_of(notes)
    watching = Watching(product)
    await watching.begin()
    assert product.on_stop is not None
    product.on_stop()
    assert (await watching.next())["more_body"] is False
    await watching.task
    assert notes.is_source_closed


async def test_a_silent_stream_sends_comments() -> None:
    notes = Notes()
    notes.heartbeat_s = 0
    watching = Watching(product_of(notes))
    await watching.begin()
    assert (await watching.next())["body"] == b":\n\n"
    watching.gone.set()
    await watching.task


async def test_an_error_of_the_source_is_not_hidden() -> None:
    notes = Notes()

    async def broken() -> AsyncIterator[bytes]:
        yield event(b"one")
        raise ZeroDivisionError

    notes._source = broken  # type: ignore[method-assign]  # The source is what fails here.
    watching = Watching(product_of(notes))
    with pytest.raises(ZeroDivisionError):
        await watching.task


# --- WebSockets -----------------------------------------------------------------------------------


async def test_websockets_are_found_by_path() -> None:
    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(socket.path_params["name"])

    product = product_of(Notes(), sockets={"/sockets/{name}": echo})
    assert await socket_messages(product, "/sockets/a") == [
        "websocket.accept",
        "websocket.send a",
    ]
    assert await socket_messages(product, "/nothing") == ["websocket.close"]


async def socket_messages(product: Product, path: str) -> list[str]:
    sent: list[str] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(" ".join(filter(None, (message["type"], message.get("text")))))

    scope = {"type": "websocket", "path": path, "raw_path": path.encode(), "headers": []}
    await product(scope, receive, send)
    return sent
