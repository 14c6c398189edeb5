"""Schemas by id from ready bytes: the same as by the long way, and never stale."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.registries import USER, RegistryWithoutKafka, client_of


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a registry with one schema."""
    async with client_of(RegistryWithoutKafka()) as client:
        await client.post("/subjects/a/versions", json={"schema": USER})
        yield client


async def test_quick_answers_are_those_of_the_long_way(client: httpx2.AsyncClient) -> None:
    quick = await client.get("/schemas/ids/1")
    long = await client.get("/schemas/ids/1?subject=")
    assert quick.json() == long.json()
    assert "headrace_registry_quick_answers_total 1" in (await client.get("/metrics")).text


async def test_quick_answers_know_what_has_changed(client: httpx2.AsyncClient) -> None:
    before = (await client.get("/schemas/ids/1")).json()["deleted"]
    await client.delete("/subjects/a")
    after = (await client.get("/schemas/ids/1")).json()["deleted"]
    assert (before, after) == (False, True)


@pytest.mark.parametrize(
    "path", ["/schemas/ids/2", "/schemas/ids/x", "/schemas/ids/", "/schemas/ids/1/x"]
)
async def test_what_has_no_quick_answer_goes_the_long_way(
    client: httpx2.AsyncClient, path: str
) -> None:
    assert (await client.get(path)).status_code == 404
