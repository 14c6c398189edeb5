"""Schemas by id from ready bytes are equal to other answers and never stale."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.processes.registries import USER, RegistryWithoutKafka, client_of


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a registry with one schema."""
    async with client_of(RegistryWithoutKafka()) as client:
        await client.post("/subjects/a/versions", json={"schema": USER})
        yield client


QUESTIONS = [
    "/schemas/ids/1",
    "/schemas/ids/1?fetchMaxId=false&subject=a",
    "/schemas/ids/1/versions",
    "/schemas/ids/1/schema?format=resolved",
]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_second_answer_equals_the_first(
    client: httpx2.AsyncClient, question: str
) -> None:
    first, second = [await client.get(question) for _ in range(2)]
    assert (second.content, second.headers) == (first.content, first.headers)
    assert "headrace_registry_quick_answers_total 1" in (await client.get("/metrics")).text


async def test_other_questions_have_other_answers(client: httpx2.AsyncClient) -> None:
    await client.get("/schemas/ids/1")
    asked = [
        await client.get("/schemas/ids/1?fetchMaxId=true"),
        await client.get("/schemas/ids/1", headers={"accept": "application/json"}),
        await client.get("/schemas/ids/1", headers={"accept": "text/html"}),
    ]
    assert "maxId" in asked[0].json()
    assert asked[1].headers["content-type"] == "application/json"
    assert asked[2].status_code == 406


async def test_quick_answers_follow_changes(client: httpx2.AsyncClient) -> None:
    await client.get("/schemas/ids/1")
    before = (await client.get("/schemas/ids/1")).json()["deleted"]
    await client.delete("/subjects/a")
    after = (await client.get("/schemas/ids/1")).json()["deleted"]
    assert (before, after) == (False, True)


@pytest.mark.parametrize(
    "path", ["/schemas/ids/2", "/schemas/ids/x", "/schemas/ids/", "/schemas/ids/1/x"]
)
async def test_refusals_are_not_kept(client: httpx2.AsyncClient, path: str) -> None:
    statuses = [(await client.get(path)).status_code for _ in range(2)]
    assert statuses == [404, 404]
    assert "headrace_registry_quick_answers_total 0" in (await client.get("/metrics")).text
