"""The HTTP interface: paths, parameters, and the worker pool of each operation."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import duckdb
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.access import OPEN, Authentication
from headrace.http.bodies import decode_json, decode_text, media_type, read_body, until_gone
from headrace.http.errors import JSON, BadRequest, HttpError, Unavailable, UnsupportedMediaType
from headrace.http.operations import Parameter, operation, operations_of
from headrace.http.product import Product
from headrace.serving.answers import FORMATS, Answer, QueryAnswer, chosen_format
from headrace.serving.descriptions import TableDescription, TableList, description, table_list
from headrace.serving.errors import out_of_memory
from headrace.serving.lookups import RESERVED, Lookup
from headrace.serving.memory_limit import extend_limit_to_stop, limit_memory
from headrace.serving.metrics import families
from headrace.serving.queries import Query
from headrace.serving.service import Service
from headrace.serving.workers import Running, WorkerPool

T = TypeVar("T")

_TEXT_TYPES = ("", "text/plain", "application/sql", "application/x-www-form-urlencoded")
"""`curl --data` sends text as a form; no SQL statement looks like one."""

_LIMIT = Parameter("limit", "The maximum number of rows.", type="integer")
_FORMAT = Parameter("format", "json, arrow or csv; by default the Accept header decides.")
_NAME = Parameter("name", "The table, as refined.orders.", "path")
_SQL = Parameter("sql", "One SELECT, WITH, VALUES, DESCRIBE, SHOW or SUMMARIZE.")
_QUERY_ERRORS = {
    400: "Invalid query; the message is DuckDB's, with line and column if known.",
    403: "The statement does more than read served tables.",
    404: "There is no such table.",
    408: "The query took too long.",
    413: "The body, or the memory that the query needs, is too large.",
    503: "Too many requests at once, or a table that is not loaded yet; see Retry-After.",
}
_ROWS: Mapping[str, Any] = {
    "answer": QueryAnswer,
    "answer_types": tuple(one.media_type for one in FORMATS),
    "errors": _QUERY_ERRORS,
}


class QueryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query with parameters: a list for `?`, an object for `$name`."""

    sql: str
    parameters: list[Any] | dict[str, Any] | None = None
    limit: int | None = None


def application(service: Service, authentication: Authentication = OPEN) -> Product:
    """Assemble the operations of the server."""

    async def check_health() -> None:
        if service.is_broken:
            raise Unavailable("the database is broken; restart the server", retry_after_s=30)

    async def check_ready() -> None:
        if not service.is_ready:
            raise Unavailable("the tables are not listed yet")

    return Product(
        title="Headrace serving",
        operations=operations_of(Routes(service)),
        families=lambda: families(
            service.metrics,
            service.refresher.publications(),
            (service.query_pool, service.lookup_pool),
        ),
        metrics=service.metrics.http,
        check_health=check_health,
        check_ready=check_ready,
        authentication=authentication,
        label=lambda operation: operation.label or "",
    )


@asynccontextmanager
async def running(service: Service, authentication: Authentication) -> AsyncIterator[Product]:
    """Refresh the tables, and limit the memory of this process, until the block ends."""
    async with service.running():
        limit_memory(service.settings.memory_bytes)
        try:
            yield application(service, authentication)
        finally:
            extend_limit_to_stop()


class Routes:
    """The endpoints of tables and queries."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @operation("GET /tables/{name}/rows", _NAME, _LIMIT, _FORMAT, label="lookup", **_ROWS)
    async def rows(self, request: Request) -> Response:
        """Look up rows by values of columns, each given as COLUMN=VALUE."""
        parameters = request.query_params
        conditions = {name: parameters.getlist(name) for name in parameters if name not in RESERVED}
        limit = self._rows_max(_whole_number(parameters.get("limit")))
        lookup = Lookup(request.path_params["name"], conditions, limit)
        return await self._answer(
            request,
            self._service.lookup_pool,
            lambda running: self._service.queries.look_up(lookup, running),
        )

    @operation(
        "POST /query",
        *(_LIMIT, _FORMAT),
        body=QueryBody,
        body_types=(JSON, "text/plain"),
        label="query",
        **_ROWS,
    )
    async def query(self, request: Request) -> Response:
        """Answer a query in the body."""
        body = await read_body(request, self._service.settings.request_bytes_max)
        kind = media_type(request)
        if kind == JSON:
            given = decode_json(body, QueryBody)
        elif kind in _TEXT_TYPES:
            given = QueryBody(decode_text(body))
        else:
            raise UnsupportedMediaType(f"send SQL as text/plain, or {JSON}, not {kind}")
        return await self._answer_query(request, given)

    @operation("GET /query", _SQL, _LIMIT, _FORMAT, label="query", **_ROWS)
    async def query_by_address(self, request: Request) -> Response:
        """Answer a query in the address."""
        sql = request.query_params.get("sql")
        if sql is None:
            raise BadRequest("give the query as ?sql=..., or send it as the body of a POST")
        return await self._answer_query(request, QueryBody(sql))

    @operation("GET /tables", answer=TableList)
    async def tables(self, request: Request) -> Response:
        """List the served tables and views."""
        return _json(table_list(self._service))

    @operation(
        "GET /tables/{name}",
        _NAME,
        answer=TableDescription,
        errors={404: _QUERY_ERRORS[404]},
        label="table",
    )
    async def table(self, request: Request) -> Response:
        """Describe the columns, the version and the origin of a table."""
        name = self._service.refresher.resolve(request.path_params["name"])

        def describe(_: Running) -> TableDescription:
            return description(self._service, name)

        return _json(await self._in_pool(self._service.lookup_pool, describe, request))

    async def _answer_query(self, request: Request, given: QueryBody) -> Response:
        if not given.sql.strip():
            raise BadRequest("the query is empty")
        asked = _whole_number(request.query_params.get("limit"))
        limit = self._rows_max(given.limit if asked is None else asked)
        query = Query(given.sql, given.parameters, limit)
        return await self._answer(
            request,
            self._service.query_pool,
            lambda running: self._service.queries.answer(query, running),
        )

    async def _answer(
        self, request: Request, pool: WorkerPool, ask: Callable[[Running], Answer]
    ) -> Response:
        """Query and write in a thread: writing a large answer takes long, too."""
        form = chosen_format(request.query_params.get("format"), request.headers.get("accept", ""))

        def work(running: Running) -> tuple[bytes, Answer]:
            answer = ask(running)
            try:
                return form.write(answer), answer
            except MemoryError as error:
                raise out_of_memory("the answer cannot be written") from error

        body, answer = await self._in_pool(pool, work, request)
        if answer.cut is not None:
            self._service.metrics.cut_answers += 1
        return Response(body, headers=answer.headers, media_type=form.media_type)

    async def _in_pool(self, pool: WorkerPool, work: Callable[[Running], T], request: Request) -> T:
        """Run work in a thread of a pool; stop it if the client disconnects."""
        try:
            seconds = self._service.settings.query_seconds_max
            return await pool.run(work, seconds, lambda: until_gone(request.receive))
        except HttpError as error:
            # After a fatal error DuckDB answers nothing any more.
            self._service.is_broken |= isinstance(error.__cause__, duckdb.FatalException)
            raise

    def _rows_max(self, asked: int | None) -> int:
        settings = self._service.settings
        if asked is None:
            return settings.rows_default
        if not 0 <= asked <= settings.rows_max:
            raise BadRequest(f"limit must be from 0 to {settings.rows_max:,}, not {asked}")
        return asked


def _whole_number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadRequest(f"limit must be a number, not {text!r}")
    return int(text)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON)
