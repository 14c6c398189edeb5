"""The REST interface as clients see it: paths, types, codes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace.http.access import Door, read_tokens
from headrace.registry.routes.application import application
from headrace.registry.settings import RegistrySettings
from headrace.serdes.fingerprints import fingerprint, guid
from tests.registries import (
    STRING,
    USER,
    USER_WITH_EMAIL,
    USER_WITH_NAME,
    RegistryWithoutKafka,
    client_of,
)

V1 = "application/vnd.schemaregistry.v1+json"


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(RegistryWithoutKafka()) as client:
        yield client


async def register(client: httpx2.AsyncClient, subject: str, text: str = USER, **given: Any) -> int:
    answer = await client.post(f"/subjects/{subject}/versions", json={"schema": text, **given})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


async def test_a_schema_is_registered_and_read_by_id(client: httpx2.AsyncClient) -> None:
    """SCH-11."""
    id = await register(client, "user-value")
    answer = await client.get(f"/schemas/ids/{id}")
    assert answer.json() == {
        "subject": "user-value",
        "version": 1,
        "guid": guid(fingerprint(USER)),
        "schemaType": "AVRO",
        "schema": USER,
        "ts": 1_700_000_000_000,
        "deleted": False,
    }


async def test_registering_answers_id_version_and_guid(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/subjects/a/versions", json={"schema": STRING})
    assert answer.json() == {
        "id": 1,
        "version": 1,
        "guid": "095d71cf-1255-6b9d-5e33-0ad575b3df5d",
        "schemaType": "AVRO",
        "schema": STRING,
    }


@pytest.mark.parametrize("version", ["1", "latest", "-1", "LATEST"])
async def test_a_version_is_read_by_number_or_as_the_latest(
    client: httpx2.AsyncClient, version: str
) -> None:
    """SCH-11."""
    await register(client, "a")
    answer = await client.get(f"/subjects/a/versions/{version}")
    assert {name: answer.json()[name] for name in ("subject", "version", "id", "schema")} == {
        "subject": "a",
        "version": 1,
        "id": 1,
        "schema": USER,
    }


async def test_a_text_is_given_without_quotes_around_it(client: httpx2.AsyncClient) -> None:
    await register(client, "a", STRING)
    for path in ("/schemas/ids/1/schema", "/subjects/a/versions/1/schema"):
        assert (await client.get(path)).text == STRING


async def test_subjects_are_listed_in_order(client: httpx2.AsyncClient) -> None:
    """SCH-11."""
    for name in ("b", "a", ":.x:c"):
        await register(client, name)
    await client.delete("/subjects/a")
    found = {}
    for query in ("", "?deleted=true", "?deletedOnly=true", "?subjectPrefix=", "?limit=1&offset=1"):
        found[query] = (await client.get(f"/subjects{query}")).json()
    assert found == {
        "": [":.x:c", "b"],
        "?deleted=true": [":.x:c", "a", "b"],
        "?deletedOnly=true": ["a"],
        "?subjectPrefix=": ["b"],
        "?limit=1&offset=1": ["b"],
    }


async def test_versions_are_listed_with_and_without_deleted_ones(
    client: httpx2.AsyncClient,
) -> None:
    """SCH-11."""
    for text in (USER, USER_WITH_NAME):
        await register(client, "a", text)
    await client.delete("/subjects/a/versions/1")
    queries = ("", "?deleted=true", "?deletedOnly=true", "?deletedAsNegative=true")
    found = [(await client.get(f"/subjects/a/versions{query}")).json() for query in queries]
    assert found == [[2], [1, 2], [1], [-1, 2]]


async def test_the_subjects_and_versions_of_an_id(client: httpx2.AsyncClient) -> None:
    for name in ("a", "b"):
        await register(client, name)
    await client.delete("/subjects/a")
    assert (await client.get("/schemas/ids/1/subjects")).json() == ["b"]
    assert (await client.get("/schemas/ids/1/versions?deleted=true")).json() == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]


async def test_schemas_are_listed_by_prefix_and_latest(client: httpx2.AsyncClient) -> None:
    for text in (USER, USER_WITH_NAME):
        await register(client, "a-value", text)
    await register(client, "b-value")
    answer = await client.get("/schemas", params={"subjectPrefix": "a", "latestOnly": "true"})
    assert [(one["subject"], one["version"]) for one in answer.json()] == [("a-value", 2)]


async def test_a_schema_is_found_by_its_guid(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/subjects/a/versions", json={"schema": STRING})
    guid = answer.json()["guid"]
    assert (await client.get(f"/schemas/guids/{guid}")).json()["schema"] == STRING
    assert (await client.get(f"/schemas/guids/{guid}/ids")).json() == [{"context": ".", "id": 1}]


async def test_the_latest_with_some_metadata(client: httpx2.AsyncClient) -> None:
    metadata = {"properties": {"major": "1"}}
    await register(client, "a", USER, metadata=metadata)
    await register(client, "a", USER_WITH_NAME, metadata={"properties": {"major": "2"}})
    answer = await client.get("/subjects/a/metadata?key=major&value=1")
    assert (answer.json()["version"], answer.json()["metadata"]) == (1, metadata)


async def test_references_are_told_from_both_ends(client: httpx2.AsyncClient) -> None:
    await register(client, "user")
    order = '{"type":"record","name":"Order","fields":[{"name":"user","type":"User"}]}'
    references = [{"name": "User", "subject": "user", "version": -1}]
    id = await register(client, "order", order, references=references)
    assert (await client.get("/subjects/user/versions/1/referencedby")).json() == [id]
    stored = (await client.get(f"/schemas/ids/{id}")).json()["references"]
    assert stored == [{"name": "User", "subject": "user", "version": 1}]


async def test_lookup_tells_the_version(client: httpx2.AsyncClient) -> None:
    await register(client, "a")
    answer = await client.post("/subjects/a", json={"schema": USER.replace(":", " : ")})
    assert (answer.json()["id"], answer.json()["version"]) == (1, 1)


async def test_compatibility_is_checked_without_registering(client: httpx2.AsyncClient) -> None:
    """SCH-11, SCH-12."""
    await register(client, "a")
    path = "/compatibility/subjects/a/versions"
    good = await client.post(path, json={"schema": USER_WITH_NAME})
    bad = await client.post(f"{path}/latest?verbose=true", json={"schema": USER_WITH_EMAIL})
    assert good.json() == {"is_compatible": True}
    assert not bad.json()["is_compatible"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in bad.json()["messages"][0]


async def test_a_subject_without_versions_is_compatible_with_all(
    client: httpx2.AsyncClient,
) -> None:
    path = "/compatibility/subjects/none/versions"
    for ending in ("", "/latest"):
        answer = await client.post(f"{path}{ending}", json={"schema": USER})
        assert answer.json() == {"is_compatible": True}


async def test_levels_are_set_for_all_and_for_subjects(client: httpx2.AsyncClient) -> None:
    """SCH-11."""
    answer = await client.put("/config", json={"compatibility": "FULL"})
    assert answer.json() == {"compatibility": "FULL"}
    assert (await client.get("/config")).json() == {"compatibilityLevel": "FULL"}
    assert (await client.get("/config/a?defaultToGlobal=true")).json() == {
        "compatibilityLevel": "FULL"
    }
    await client.put("/config/a", json={"compatibility": "none", "normalize": True})
    assert (await client.get("/config/a")).json() == {
        "normalize": True,
        "compatibilityLevel": "NONE",
    }
    assert (await client.delete("/config/a")).json()["compatibilityLevel"] == "NONE"


async def test_modes_are_set_for_all_and_for_subjects(client: httpx2.AsyncClient) -> None:
    assert (await client.put("/mode/a", json={"mode": "READONLY"})).json() == {"mode": "READONLY"}
    assert (await client.get("/mode/a")).json() == {"mode": "READONLY"}
    assert (await client.get("/mode")).json() == {"mode": "READWRITE"}
    assert (await client.delete("/mode/a")).json() == {"mode": "READONLY"}
    assert (await client.get("/mode/a?defaultToGlobal=true")).json() == {"mode": "READWRITE"}


async def test_contexts_are_places_of_their_own(client: httpx2.AsyncClient) -> None:
    await register(client, "a")
    answer = await client.post("/contexts/x/subjects/b/versions", json={"schema": STRING})
    assert answer.json()["id"] == 1
    assert (await client.get("/contexts")).json() == [".", ".x"]
    assert (await client.get("/contexts/x/subjects")).json() == [":.x:b"]
    assert (await client.get("/contexts/x/schemas/ids/1")).json()["schema"] == STRING
    assert (await client.get("/schemas/ids/1?subject=:.x:")).json()["schema"] == STRING
    assert (await client.get("/schemas/ids/1")).json()["schema"] == USER


async def test_an_alias_leads_to_its_subject(client: httpx2.AsyncClient) -> None:
    await register(client, "old")
    await client.put("/config/new", json={"alias": "old"})
    assert (await client.get("/subjects/new/versions/1")).json()["subject"] == "old"


@pytest.mark.parametrize("is_set", [False, True])
async def test_normalizing_is_a_wish_or_a_setting(client: httpx2.AsyncClient, is_set: bool) -> None:
    await register(client, "a")
    if is_set:
        await client.put("/config/a", json={"normalize": True})
    same = USER.replace('"long"', '{"type":"long"}')
    query = "" if is_set else "?normalize=true"
    answer = await client.post(f"/subjects/a/versions{query}", json={"schema": same})
    assert answer.json()["id"] == 1


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
async def test_other_types_are_not_to_be_had(client: httpx2.AsyncClient, path: str) -> None:
    await register(client, "a")
    assert (await client.get(path, headers={"accept": "text/html"})).status_code == 406


async def test_a_write_with_an_unwanted_answer_is_not_done(client: httpx2.AsyncClient) -> None:
    body, headers = {"schema": STRING}, {"accept": "text/html"}
    answer = await client.post("/subjects/a/versions", json=body, headers=headers)
    assert answer.status_code == 406
    assert (await client.get("/subjects")).json() == []


async def test_head_is_get_without_the_body(client: httpx2.AsyncClient) -> None:
    answer = await client.head("/subjects")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_options_tells_the_methods(client: httpx2.AsyncClient) -> None:
    answer = await client.options("/subjects/a")
    assert answer.headers["allow"] == "DELETE, OPTIONS, POST"


async def test_the_server_tells_what_it_is(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/")).json() == {}
    assert (await client.get("/schemas/types")).json() == ["JSON", "PROTOBUF", "AVRO"]
    assert (await client.get("/v1/metadata/id")).json()["scope"]["clusters"] == {
        "kafka-cluster": "",
        "schema-registry-cluster": "schema-registry",
    }
    assert "version" in (await client.get("/v1/metadata/version")).json()
    assert (await client.get("/health")).json() == {"status": "ok"}
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


async def test_with_tokens_only_those_who_have_one_are_answered(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("secret-token\n")
    file.chmod(0o600)
    app = application(RegistryWithoutKafka(), Door(tokens=read_tokens(file)))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://registry") as client:
        refused = await client.get("/schemas/ids/1")
        granted = await client.get("/subjects", headers={"authorization": "Bearer secret-token"})
    assert (refused.status_code, refused.json()["error_code"]) == (401, 401)
    assert granted.status_code == 200


async def test_modes_stay_where_the_settings_say_so() -> None:
    registry = RegistryWithoutKafka(RegistrySettings(mode_mutability=False))
    async with client_of(registry) as client:
        answer = await client.put("/mode", json={"mode": "READONLY"})
    assert answer.json()["error_code"] == 42205


async def test_lenient_defaults_are_a_setting() -> None:
    """SCH-3."""
    text = '{"type":"record","name":"R","fields":[{"name":"taxcode","type":"int","default":"39"}]}'
    statuses = []
    for is_lenient in (False, True):
        settings = RegistrySettings(headrace_lenient_defaults=is_lenient)
        async with client_of(RegistryWithoutKafka(settings)) as client:
            answer = await client.post("/subjects/a/versions", json={"schema": text})
        statuses.append(answer.status_code)
    assert statuses == [422, 200]


async def test_what_is_forwarded_is_the_request_as_it_came() -> None:
    registry = RegistryWithoutKafka()
    async with client_of(registry) as client:
        await client.post("/contexts/x/subjects/a%2Fb/versions?force=true", json={"schema": STRING})
    (request,) = registry.forwarded
    assert request.target == "/contexts/x/subjects/a%2Fb/versions?force=true"
    assert (request.method, request.body) == ("POST", b'{"schema":"\\"string\\""}')


async def test_who_forwards_is_told_how_far_to_read() -> None:
    registry = RegistryWithoutKafka()
    async with client_of(registry) as client:
        answer = await client.put(
            "/config", json={"compatibility": "FULL"}, headers={"x-forward": "true"}
        )
    assert answer.headers["x-headrace-offset"] == "-1"
