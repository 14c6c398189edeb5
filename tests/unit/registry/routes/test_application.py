"""Behaviour of all paths: codes, types, methods, authentication."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.http.access import Authentication, read_tokens
from headrace.registry.routes.application import application
from tests.processes.registries import (
    STRING,
    USER,
    USER_WITH_EMAIL,
    RegistryWithoutKafka,
    client_of,
    register,
)

V1 = "application/vnd.schemaregistry.v1+json"


REFUSALS = [
    ("GET", "/nothing", None, 404, 404),
    ("GET", "/subjects/none/versions", None, 404, 40401),
    ("GET", "/subjects/none/versions/1", None, 404, 40401),
    ("GET", "/subjects/a/versions/9", None, 404, 40402),
    ("GET", "/subjects/a/versions/0", None, 422, 42202),
    ("GET", "/subjects/a/versions/x", None, 422, 42202),
    ("GET", "/subjects/a/versions/99999999999", None, 422, 42202),
    ("GET", "/schemas/ids/9", None, 404, 40403),
    ("GET", "/schemas/ids/x", None, 404, 404),
    ("GET", "/schemas/ids/9/subjects", None, 404, 40403),
    ("GET", "/schemas/guids/x", None, 404, 40403),
    ("GET", "/subjects?limit=many", None, 404, 404),
    ("GET", "/config/none", None, 404, 40408),
    ("GET", "/mode/none", None, 404, 40409),
    ("GET", "/subjects/a/metadata?key=a&value=b", None, 404, 40403),
    ("POST", "/subjects/none", {"schema": STRING}, 404, 40401),
    ("POST", "/subjects/a", {"schema": STRING}, 404, 40403),
    ("POST", "/subjects/a/versions", {"schema": "{"}, 422, 42201),
    ("POST", "/subjects/a/versions", {"schema": STRING, "schemaType": "XML"}, 422, 42201),
    ("POST", "/subjects/a/versions", {"schema": USER_WITH_EMAIL}, 409, 409),
    ("POST", "/subjects/a/versions", {"schema": STRING, "id": 5}, 422, 42205),
    ("POST", "/subjects/a/versions", {}, 200, None),
    ("POST", "/subjects/b/versions", {}, 422, 42201),
    ("POST", "/subjects/__GLOBAL/versions", {"schema": STRING}, 422, 42208),
    (
        "POST",
        "/subjects/a/versions",
        {"schema": USER, "ruleSet": {"domainRules": [{"name": "1"}]}},
        422,
        42210,
    ),
    ("POST", "/compatibility/subjects/a/versions/9", {"schema": STRING}, 404, 40402),
    ("POST", "/compatibility/subjects/a/versions", {"schema": "{"}, 422, 42201),
    ("PUT", "/config", {"compatibility": "most"}, 422, 42203),
    ("PUT", "/mode", {"mode": "WRITE"}, 422, 42204),
    ("PUT", "/mode", {"mode": "IMPORT"}, 422, 42205),
    ("DELETE", "/subjects/none", None, 404, 40401),
    ("DELETE", "/subjects/a?permanent=true", None, 404, 40405),
    ("DELETE", "/subjects/a/versions/1?permanent=true", None, 404, 40407),
    ("DELETE", "/subjects/a/versions/9", None, 404, 40402),
    ("DELETE", "/config/none", None, 404, 40401),
    ("DELETE", "/mode/none", None, 404, 40401),
    ("DELETE", "/contexts/x", None, 204, None),
    ("DELETE", "/schemas/ids/1", None, 405, 405),
    ("GET", "/contexts/a:b/subjects", None, 400, 400),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), REFUSALS)
async def test_refusals_have_confluents_codes(
    client: httpx2.AsyncClient,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    status: int,
    code: int | None,
) -> None:
    await register(client, "a")
    answer = await client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    if code is not None:
        assert answer.json()["error_code"] == code


@pytest.mark.parametrize(
    ("content", "type", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"schema":5}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"schema":"\\"int\\""}', "text/plain", 415),
        (b'{"schema":"\\"int\\""}', "application/x-www-form-urlencoded", 415),
        (b'{"schema":"\\"int\\""}', "application/octet-stream", 200),
        (b'{"schema":"\\"int\\""}', "application/vnd.schemaregistry+json", 200),
        (b'{"schema":"\\"int\\""}', V1 + "; charset=utf-8", 200),
        (b'{"schema":"' + b"x" * 2_000_000 + b'"}', "application/json", 413),
        (b"[" * 100_000, "application/json", 400),
    ],
)
async def test_bodies_of_other_kinds_are_refused(
    client: httpx2.AsyncClient, content: bytes, type: str, status: int
) -> None:
    answer = await client.post(
        "/subjects/a/versions", content=content, headers={"content-type": type}
    )
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("accept", "type"),
    [
        ("*/*", V1),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        (f"{V1}, application/json; q=0.5", V1),
    ],
)
@pytest.mark.parametrize("path", ["/subjects", "/schemas/ids/1", "/schemas/ids/1?format="])
async def test_the_client_chooses_the_type_of_the_answer(
    client: httpx2.AsyncClient, path: str, accept: str, type: str
) -> None:
    await register(client, "a")
    answer = await client.get(path, headers={"accept": accept})
    assert answer.headers["content-type"] == type


@pytest.mark.parametrize("path", ["/subjects", "/schemas/ids/1"])
async def test_other_types_are_not_acceptable(client: httpx2.AsyncClient, path: str) -> None:
    await register(client, "a")
    assert (await client.get(path, headers={"accept": "text/html"})).status_code == 406


async def test_head_is_get_without_the_body(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/subjects")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_options_lists_the_methods(client: httpx2.AsyncClient) -> None:
    answer = await client.options("/subjects/a")
    assert answer.headers["allow"] == "DELETE, OPTIONS, POST"


async def test_the_server_describes_itself(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/")).json() == {}
    assert (await client.get("/schemas/types")).json() == ["JSON", "PROTOBUF", "AVRO"]
    assert (await client.get("/v1/metadata/id")).json()["scope"]["clusters"] == {
        "kafka-cluster": "",
        "schema-registry-cluster": "schema-registry",
    }
    assert "version" in (await client.get("/v1/metadata/version")).json()
    assert (await client.get("/v1/metadata/deployment")).json() == {"attributes": []}
    assert (await client.get("/health")).json() == {"status": "healthy"}
    assert "\nheadrace_registry_leader 1\n" in (await client.get("/metrics")).text


async def test_without_a_leader_it_is_healthy_and_not_ready() -> None:
    registry = RegistryWithoutKafka()
    registry.leader = None
    async with client_of(registry) as client:
        statuses = [(await client.get(path)).status_code for path in ("/health", "/ready")]
    assert statuses == [200, 503]


async def test_every_operation_is_described(client: httpx2.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert "post" in document["paths"]["/subjects/{subject}/versions"]
    assert document["components"]["schemas"]["ErrorMessage"]["required"] == [
        "error_code",
        "message",
    ]


async def test_with_tokens_only_clients_with_a_token_are_answered(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("secret-token\n")
    file.chmod(0o600)
    app = application(RegistryWithoutKafka(), Authentication(tokens=read_tokens(file)))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://registry") as client:
        refused = await client.get("/schemas/ids/1")
        granted = await client.get("/subjects", headers={"authorization": "Bearer secret-token"})
    assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
    assert granted.status_code == 200


async def test_pages_of_other_sites_register_nothing() -> None:
    registry = RegistryWithoutKafka()
    async with client_of(registry) as client:
        answer = await client.post(
            "/subjects/a/versions",
            content=b'{"schema":"\\"string\\""}',
            headers={"Origin": "https://evil.example"},
        )
        subjects = await client.get("/subjects")
    assert (answer.status_code, answer.json()["error_code"]) == (403, 403)
    assert subjects.json() == []


async def test_a_request_is_forwarded_unchanged() -> None:
    registry = RegistryWithoutKafka()
    async with client_of(registry) as client:
        await client.post("/contexts/x/subjects/a%2Fb/versions?force=true", json={"schema": STRING})
    (request,) = registry.forwarded
    assert request.target == "/contexts/x/subjects/a%2Fb/versions?force=true"
    assert (request.method, request.body) == ("POST", b'{"schema":"\\"string\\""}')


async def test_a_forwarder_receives_the_offset_to_read_to() -> None:
    registry = RegistryWithoutKafka()
    async with client_of(registry) as client:
        answer = await client.put(
            "/config", json={"compatibility": "FULL"}, headers={"x-forward": "true"}
        )
    assert answer.headers["x-headrace-offset"] == "-1"
