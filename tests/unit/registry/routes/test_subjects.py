"""Subjects, their versions, and checks of new versions."""

import httpx2
import pytest

from headrace.registry.settings import RegistrySettings
from headrace.serdes.fingerprints import fingerprint, guid
from tests.processes.registries import (
    STRING,
    USER,
    USER_WITH_EMAIL,
    USER_WITH_NAME,
    RegistryWithoutKafka,
    client_of,
    register,
)


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
    }


async def test_registering_returns_the_added_properties(client: httpx2.AsyncClient) -> None:
    await client.put("/config/a", json={"defaultMetadata": {"properties": {"owner": "ada"}}})
    answer = (await client.post("/subjects/a/versions", json={"schema": STRING})).json()
    assert (answer["schema"], answer["metadata"]) == (STRING, {"properties": {"owner": "ada"}})


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


async def test_the_latest_with_some_metadata(client: httpx2.AsyncClient) -> None:
    metadata = {"properties": {"major": "1"}}
    await register(client, "a", USER, metadata=metadata)
    await register(client, "a", USER_WITH_NAME, metadata={"properties": {"major": "2"}})
    answer = await client.get("/subjects/a/metadata?key=major&value=1")
    assert (answer.json()["version"], answer.json()["metadata"]) == (1, metadata)


async def test_references_are_listed_from_both_ends(client: httpx2.AsyncClient) -> None:
    await register(client, "user")
    order = '{"type":"record","name":"Order","fields":[{"name":"user","type":"User"}]}'
    references = [{"name": "User", "subject": "user", "version": -1}]
    id = await register(client, "order", order, references=references)
    assert (await client.get("/subjects/user/versions/1/referencedby")).json() == [id]
    stored = (await client.get(f"/schemas/ids/{id}")).json()["references"]
    assert stored == [{"name": "User", "subject": "user", "version": 1}]


async def test_the_order_of_references_is_normalized_too(client: httpx2.AsyncClient) -> None:
    await register(client, "b", USER)
    await register(client, "a", USER.replace("User", "Item"))
    order = (
        '{"type":"record","name":"Order","fields":[{"name":"user","type":"User"},'
        '{"name":"item","type":"Item"}]}'
    )
    user = {"name": "User", "subject": "b", "version": 1}
    item = {"name": "Item", "subject": "a", "version": 1}
    given = {"schema": order, "references": [user, item, user]}
    await client.post("/subjects/order/versions?normalize=true", json=given)
    other = {"schema": order, "references": [item, user]}
    found = await client.post("/subjects/order?normalize=true", json=other)
    assert found.json()["references"] == [item, user]
    assert (await client.post("/subjects/order", json=given)).json()["error_code"] == 40403


async def test_a_path_in_the_default_context_lists_that_one_alone(
    client: httpx2.AsyncClient,
) -> None:
    for name in ("a", ":.x:b"):
        await register(client, name)
    assert (await client.get("/subjects")).json() == [":.x:b", "a"]
    for context in ("%2E", ":.:"):
        assert (await client.get(f"/contexts/{context}/subjects")).json() == ["a"]
    assert (await client.get("/contexts/.x/subjects")).json() == [":.x:b"]


async def test_lookup_returns_the_version(client: httpx2.AsyncClient) -> None:
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


async def test_an_alias_leads_to_its_subject(client: httpx2.AsyncClient) -> None:
    await register(client, "old")
    await client.put("/config/new", json={"alias": "old"})
    assert (await client.get("/subjects/new/versions/1")).json()["subject"] == "old"


@pytest.mark.parametrize("is_set", [False, True])
async def test_normalizing_is_requested_or_configured(
    client: httpx2.AsyncClient, is_set: bool
) -> None:
    await register(client, "a")
    if is_set:
        await client.put("/config/a", json={"normalize": True})
    same = USER.replace('"long"', '{"type":"long"}')
    query = "" if is_set else "?normalize=true"
    answer = await client.post(f"/subjects/a/versions{query}", json={"schema": same})
    assert answer.json()["id"] == 1


async def test_a_write_with_an_unwanted_answer_is_not_done(client: httpx2.AsyncClient) -> None:
    body, headers = {"schema": STRING}, {"accept": "text/html"}
    answer = await client.post("/subjects/a/versions", json=body, headers=headers)
    assert answer.status_code == 406
    assert (await client.get("/subjects")).json() == []


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


async def test_a_namespace_is_part_of_the_name_if_so_configured() -> None:
    """SCH-7."""
    moved = USER.replace('"name":"User"', '"name":"User","namespace":"shop"')
    known = USER.replace('"name":"User"', '"name":"User","namespace":"shop","aliases":[".User"]')
    found = {}
    for strict in (False, True):
        registry = RegistryWithoutKafka(RegistrySettings(headrace_avro_full_names=strict))
        async with client_of(registry) as client:
            await register(client, "a")
            answers = [
                await client.post("/subjects/a/versions", json={"schema": text})
                for text in (moved, known)
            ]
            found[strict] = [answer.status_code for answer in answers]
    assert found == {False: [200, 200], True: [409, 200]}
