"""Bodies, errors, access and the OpenAPI document of a product with a few operations."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from headrace.http.access import OPEN, Authentication, read_tokens
from headrace.http.bodies import decode_json, decode_text, read_body
from headrace.http.errors import NotFound, Unavailable
from headrace.http.operations import Operation, Parameter, openapi
from headrace.http.product import Product


class Greeting(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    times: int = 1


async def greet(request: Request) -> Response:
    greeting = decode_json(await read_body(request, 100), Greeting)
    return PlainTextResponse(f"hello {greeting.name}")


async def echo(request: Request) -> Response:
    return PlainTextResponse(decode_text(await read_body(request, 100)))


async def lose(request: Request) -> Response:
    raise NotFound("it is lost", details={"place": 7})


async def say(request: Request) -> Response:
    return PlainTextResponse("|".join(request.path_params.values()))


async def rest(request: Request) -> Response:
    raise Unavailable("not now", retry_after_s=9)


async def fail(request: Request) -> Response:
    raise ValueError("insides")


OPERATIONS = [
    Operation("POST", "/greet", greet, "Say hello.", body=Greeting, errors={400: "Wrong."}),
    Operation("POST", "/echo", echo, "Say it again.", body=str, body_types=("text/plain",)),
    Operation("GET", "/lose/{name}", lose, "Lose.", parameters=(Parameter("name", "", "path"),)),
    Operation("GET", "/say/{word}/to:{name}", say, "Say."),
    Operation("GET", "/rest", rest, "Rest."),
    Operation("GET", "/fail", fail, "Fail."),
]


def client(authentication: Authentication = OPEN) -> httpx2.AsyncClient:
    product = Product(
        title="Test", operations=OPERATIONS, families=list, authentication=authentication
    )
    transport = httpx2.ASGITransport(product, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://test")


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with client() as opened:
        yield opened


async def test_a_body_becomes_a_value_of_its_type(http: httpx2.AsyncClient) -> None:
    assert (await http.post("/greet", json={"name": "ada"})).text == "hello ada"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b'{"name": 7}', "$.name"),
        (b'{"name": "ada", "tims": 2}', "tims"),
        (b"{", "truncated"),
        (b'{"name": "\xff"}', "utf-8"),
        (b"[" * 90, "array"),
    ],
)
async def test_an_invalid_body_is_answered_with_the_reason(
    http: httpx2.AsyncClient, content: bytes, word: str
) -> None:
    answer = await http.post("/greet", content=content)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert word in answer.json()["message"].lower()


async def test_a_body_that_is_not_utf_8_is_rejected(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/echo", content=b"ab\xff")
    assert answer.json()["message"] == "the body is not UTF-8: invalid start byte at byte 2"


async def test_a_body_with_too_large_a_content_length_is_not_read(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/echo", content=b"x" * 101)
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")


async def test_a_body_without_a_length_is_bounded_too(http: httpx2.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 60

    assert (await http.post("/echo", content=endless())).status_code == 413


async def test_errors_have_one_shape(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/lose/key")
    assert answer.json() == {"error": "not_found", "message": "it is lost", "place": 7}


async def test_a_temporary_refusal_has_a_time_to_retry(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/rest")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "9")


async def test_an_internal_error_reveals_no_details(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/fail")
    assert (answer.status_code, "insides" in answer.text) == (500, False)


async def test_unknown_paths_and_methods_have_the_same_shape(http: httpx2.AsyncClient) -> None:
    answers = [await http.get("/nowhere"), await http.get("/greet")]
    assert [(one.status_code, one.json()["error"]) for one in answers] == [
        (404, "not_found"),
        (405, "method_not_allowed"),
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("Authorization", "Bearer wrong")], 401),
        ([("Authorization", "Basic word")], 401),
        ([("Authorization", "word")], 401),
        ([("Authorization", "Bearer word"), ("Authorization", "Bearer word")], 401),
        ([("Authorization", "bearer word")], 503),
    ],
)
async def test_requests_need_a_valid_token(
    tmp_path: Path, headers: list[tuple[str, str]], status: int
) -> None:
    (tmp_path / "tokens").write_text("word\n")
    async with client(Authentication(read_tokens(tmp_path / "tokens"))) as http:
        answer = await http.get("/rest", headers=headers)
        assert answer.status_code == status
        assert (await http.get("/health")).status_code == 200


def test_the_page_describes_every_operation() -> None:
    document = openapi("Test", "1", OPERATIONS, has_tokens=True)
    assert {path: list(methods) for path, methods in document["paths"].items()} == {
        "/greet": ["post"],
        "/echo": ["post"],
        "/lose/{name}": ["get"],
        "/say/{word}/to:{name}": ["get"],
        "/rest": ["get"],
        "/fail": ["get"],
    }
    schema = document["paths"]["/greet"]["post"]["requestBody"]["content"]["application/json"]
    assert schema == {"schema": {"$ref": "#/components/schemas/Greeting"}}
    assert {"Greeting", "ErrorBody"} <= document["components"]["schemas"].keys()
    assert document["security"] == [{"token": []}]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/say/a/to:b", "a|b"),
        ("/say/a%2Fb/to%3ac%2f%C3%A9", "a/b|c/é"),
        ("/say/%252F/to:b", "%2F|b"),
    ],
)
async def test_names_in_paths_may_hold_slashes(
    http: httpx2.AsyncClient, path: str, said: str
) -> None:
    assert (await http.get(path)).text == said


async def test_an_unescaped_slash_separates_segments_of_a_path(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/say/a/b/to:c")).status_code == 404
    assert (await http.get("/say%2Fa/to:c")).status_code == 404
