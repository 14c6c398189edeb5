"""Settings and modes by path."""

import httpx2

from headrace.registry.settings import RegistrySettings
from tests.processes.registries import RegistryWithoutKafka, client_of


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


async def test_modes_cannot_change_if_the_settings_forbid_it() -> None:
    registry = RegistryWithoutKafka(RegistrySettings(mode_mutability=False))
    async with client_of(registry) as client:
        answer = await client.put("/mode", json={"mode": "READONLY"})
    assert answer.json()["error_code"] == 42205


async def test_an_unknown_policy_is_rejected(client: httpx2.AsyncClient) -> None:
    answer = await client.put("/config/a", json={"compatibilityPolicy": "lenient"})
    assert answer.json() == {"compatibilityPolicy": "lenient"}
    answer = await client.put("/config/a", json={"compatibilityPolicy": "lenent"})
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42203)
    assert "Valid values are strict, lenient and logical" in answer.json()["message"]
