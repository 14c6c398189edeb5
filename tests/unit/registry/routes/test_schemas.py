"""Schemas by id and guid, lists of them, and contexts."""

import httpx2

from tests.processes.registries import STRING, USER, USER_WITH_NAME, register


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
    found = (await client.get(f"/schemas/guids/{guid}")).json()
    assert found["schema"] == STRING
    assert "subject" not in found
    assert (await client.get(f"/schemas/guids/{guid}/ids")).json() == [{"context": ".", "id": 1}]


async def test_contexts_are_places_of_their_own(client: httpx2.AsyncClient) -> None:
    await register(client, "a")
    answer = await client.post("/contexts/x/subjects/b/versions", json={"schema": STRING})
    assert answer.json()["id"] == 1
    assert (await client.get("/contexts")).json() == [".", ".x"]
    assert (await client.get("/contexts/x/subjects")).json() == [":.x:b"]
    assert (await client.get("/contexts/x/schemas/ids/1")).json()["schema"] == STRING
    assert (await client.get("/schemas/ids/1?subject=:.x:")).json()["schema"] == STRING
    assert (await client.get("/schemas/ids/1")).json()["schema"] == USER
