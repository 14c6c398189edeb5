"""The HTTP face: paths, parameters, and which lane answers what."""

from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter_ns
from typing import Any, TypeVar

import duckdb
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.access import BearerAccess, TokenFile
from headrace.http.bodies import decode_json, decode_text, media_type, read_body, until_gone
from headrace.http.cors import OwnPages
from headrace.http.errors import (
    JSON,
    BadRequest,
    HttpError,
    Unavailable,
    UnsupportedMediaType,
    error_handlers,
)
from headrace.http.operations import Operation, Parameter, openapi, routes
from headrace.runtime.exposition import CONTENT_TYPE, render
from headrace.serving.answers import FORMATS, Answer, QueryAnswer, chosen_format
from headrace.serving.descriptions import TableDescription, TableList, description, table_list
from headrace.serving.errors import out_of_memory
from headrace.serving.lanes import Lane, Running
from headrace.serving.lookups import RESERVED
from headrace.serving.metrics import families
from headrace.serving.questions import KeyedQuestion, Question
from headrace.serving.service import Service

T = TypeVar("T")

OPEN_PATHS = ("/health", "/ready")
_TEXT_TYPES = ("", "text/plain", "application/sql", "application/x-www-form-urlencoded")
"""What `curl --data` sends counts as text: SQL looks like no form."""

_LIMIT = Parameter("limit", "How many rows at most.", type="integer")
_FORMAT = Parameter("format", "json, arrow or csv; else the Accept header decides.")
_NAME = Parameter("name", "The table, as refined.orders.", "path")
_ANSWER_TYPES = tuple(one.media_type for one in FORMATS)
_QUERY_ERRORS = {
    400: "The query is wrong; the message is DuckDB's, with line and column where it has them.",
    403: "The statement does more than read served tables.",
    404: "There is no such table.",
    408: "The query took too long.",
    413: "The body, or the memory that the query needs, is too large.",
    503: "Too many questions at once, or a table that is not loaded yet; see Retry-After.",
}


class QueryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query with parameters: a list for `?`, an object for `$name`."""

    sql: str
    parameters: list[Any] | dict[str, Any] | None = None
    limit: int | None = None


class Status(msgspec.Struct, frozen=True):
    status: str


def application(service: Service, tokens: TokenFile | None) -> Starlette:
    """The ASGI application of one service."""
    operations = Routes(service, has_tokens=tokens is not None).operations()
    app = Starlette(routes=routes(operations), exception_handlers=dict(error_handlers()))
    if tokens is not None:
        app.add_middleware(BearerAccess, tokens=tokens, open_paths=OPEN_PATHS)
    app.add_middleware(OwnPages)
    return app


class Routes:
    """The endpoints; each turns a request into a question and its answer into bytes."""

    def __init__(self, service: Service, *, has_tokens: bool = False) -> None:
        self._service = service
        self._has_tokens = has_tokens

    def operations(self) -> list[Operation]:
        options = (_LIMIT, _FORMAT)
        sql = Parameter("sql", "One SELECT, WITH, VALUES, DESCRIBE, SHOW or SUMMARIZE.")
        return [  # Paths are tried in this order, and lookups are what must be quick.
            Operation(
                "GET",
                "/tables/{name}/rows",
                self.rows,
                "Rows by values of columns, each given as COLUMN=VALUE.",
                parameters=(_NAME, *options),
                answer=QueryAnswer,
                answer_types=_ANSWER_TYPES,
                errors={status: _QUERY_ERRORS[status] for status in (400, 404, 408, 503)},
            ),
            Operation(
                "POST",
                "/query",
                self.query,
                "Answer a query.",
                parameters=options,
                body=QueryBody,
                body_types=(JSON, "text/plain"),
                answer=QueryAnswer,
                answer_types=_ANSWER_TYPES,
                errors=_QUERY_ERRORS,
            ),
            Operation(
                "GET",
                "/query",
                self.query_by_address,
                "Answer a query.",
                parameters=(sql, *options),
                answer=QueryAnswer,
                answer_types=_ANSWER_TYPES,
                errors=_QUERY_ERRORS,
            ),
            Operation("GET", "/tables", self.tables, "List what is served.", answer=TableList),
            Operation(
                "GET",
                "/tables/{name}",
                self.table,
                "Columns, version and origin of a table.",
                parameters=(_NAME,),
                answer=TableDescription,
                errors={404: _QUERY_ERRORS[404]},
            ),
            Operation("GET", "/health", self.health, "Whether it works.", answer=Status),
            Operation("GET", "/ready", self.ready, "Whether tables are listed.", answer=Status),
            Operation(
                "GET", "/metrics", self.metrics, "For Prometheus.", answer_types=(CONTENT_TYPE,)
            ),
            Operation("GET", "/openapi.json", self.openapi, "This description."),
        ]

    async def query(self, request: Request) -> Response:
        body = await read_body(request, self._service.settings.request_bytes_max)
        kind = media_type(request)
        if kind == JSON:
            given = decode_json(body, QueryBody)
        elif kind in _TEXT_TYPES:
            given = QueryBody(decode_text(body))
        else:
            raise UnsupportedMediaType(f"send SQL as text/plain, or {JSON}, not {kind}")
        return await self._answer_query(request, given)

    async def query_by_address(self, request: Request) -> Response:
        sql = request.query_params.get("sql")
        if sql is None:
            raise BadRequest("give the query as ?sql=..., or send it as the body of a POST")
        return await self._answer_query(request, QueryBody(sql))

    async def tables(self, request: Request) -> Response:
        return _json(table_list(self._service))

    async def table(self, request: Request) -> Response:
        name = self._service.queries.names.resolve(request.path_params["name"])

        def describe(_: Running) -> TableDescription:
            return description(self._service, name)

        return _json(await self._in_lane(self._service.lookup_lane, describe, request, "table"))

    async def rows(self, request: Request) -> Response:
        parameters = request.query_params
        conditions = {name: parameters.getlist(name) for name in parameters if name not in RESERVED}
        limit = self._rows_max(_whole_number(parameters.get("limit")))
        question = KeyedQuestion(request.path_params["name"], conditions, limit)
        return await self._answer(
            request,
            self._service.lookup_lane,
            lambda running: self._service.queries.look_up(question, running),
        )

    async def health(self, request: Request) -> Response:
        if self._service.is_broken:
            raise Unavailable("the database is broken; restart the server", retry_after_s=30)
        return _json(Status("healthy"))

    async def ready(self, request: Request) -> Response:
        if not self._service.is_ready:
            raise Unavailable("the tables are not listed yet")
        return _json(Status("ready"))

    async def metrics(self, request: Request) -> Response:
        service = self._service
        lanes = (service.query_lane, service.lookup_lane)
        found = families(service.metrics, service.refresher.publications(), lanes)
        return Response("".join(render(found)), media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        document = openapi(
            "Headrace serving", version("headrace"), self.operations(), has_tokens=self._has_tokens
        )
        return _json(document)

    async def _answer_query(self, request: Request, given: QueryBody) -> Response:
        if not given.sql.strip():
            raise BadRequest("the query is empty")
        asked = _whole_number(request.query_params.get("limit"))
        limit = self._rows_max(given.limit if asked is None else asked)
        question = Question(given.sql, given.parameters, limit)
        return await self._answer(
            request,
            self._service.query_lane,
            lambda running: self._service.queries.answer(question, running),
        )

    async def _answer(
        self, request: Request, lane: Lane, ask: Callable[[Running], Answer]
    ) -> Response:
        """Ask and write in a thread of the lane: large answers take long to write, too."""
        form = chosen_format(request.query_params.get("format"), request.headers.get("accept", ""))

        def work(running: Running) -> tuple[bytes, Answer]:
            answer = ask(running)
            try:
                return form.write(answer), answer
            except MemoryError as error:
                raise out_of_memory("the answer cannot be written") from error

        body, answer = await self._in_lane(lane, work, request, lane.name)
        if answer.cut is not None:
            self._service.metrics.cut_answers += 1
        return Response(body, headers=answer.headers, media_type=form.media_type)

    async def _in_lane(
        self, lane: Lane, work: Callable[[Running], T], request: Request, kind: str
    ) -> T:
        """Count the question and how long it took; stop it if its asker goes away."""
        began = perf_counter_ns()
        status = 500
        try:
            seconds = self._service.settings.query_seconds_max
            result = await lane.run(work, seconds, lambda: until_gone(request.receive))
            status = 200
            return result
        except HttpError as error:
            status = error.status
            self._service.is_broken |= _breaks_the_database(error)
            raise
        finally:
            self._service.metrics.answered(kind, status, perf_counter_ns() - began)

    def _rows_max(self, asked: int | None) -> int:
        settings = self._service.settings
        if asked is None:
            return settings.rows_default
        if not 0 <= asked <= settings.rows_max:
            raise BadRequest(f"limit must be from 0 to {settings.rows_max:,}, not {asked}")
        return asked


def _breaks_the_database(error: HttpError) -> bool:
    """DuckDB answers nothing any more after a fatal error; only a restart helps."""
    return isinstance(error.__cause__, duckdb.FatalException)


def _whole_number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadRequest(f"limit must be a number, not {text!r}")
    return int(text)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON)
