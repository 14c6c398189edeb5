"""Consumer instances by name, without a broker."""

from typing import Any

import pytest

from headrace.rest.clients import Clients
from headrace.rest.errors import RestError
from headrace.rest.instances import ConsumerInstances
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings, settings_of


def proxy_of(**settings: str) -> tuple[ConsumerInstances, Clients]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    found = settings_of({"bootstrap.servers": "127.0.0.1:1", **given})
    return ConsumerInstances(found, Schemas(found)), Clients(found, {})


async def test_an_instance_without_a_name_gets_one() -> None:
    instances, clients = proxy_of(id="proxy-7")
    async with instances.expiring():
        assert instances.create("g", {}, clients, "").startswith("rest-consumer-proxy-7-")


async def test_an_id_overrides_a_name() -> None:
    instances, clients = proxy_of()
    async with instances.expiring():
        assert instances.create("g", {"id": "one", "name": "two"}, clients, "") == "one"


async def test_an_instance_is_found_by_its_owner_only() -> None:
    instances, clients = proxy_of()
    async with instances.expiring():
        instances.create("g", {"name": "mine"}, clients, "ada")
        assert instances.find("g", "mine", "ada").owner == "ada"
        for group, name, owner in (("g", "mine", "bob"), ("h", "mine", "ada"), ("g", "x", "ada")):
            with pytest.raises(RestError) as refusal:
                instances.find(group, name, owner)
            assert refusal.value.code == 40403


async def test_a_name_is_free_again_when_its_instance_is_gone() -> None:
    instances, clients = proxy_of()
    async with instances.expiring():
        instances.create("g", {"name": "mine"}, clients, "")
        with pytest.raises(RestError) as refusal:
            instances.create("g", {"name": "mine"}, clients, "")
        assert refusal.value.code == 40902
        await instances.delete("g", "mine", "")
        assert instances.create("g", {"name": "mine"}, clients, "") == "mine"


async def test_the_number_of_instances_is_limited() -> None:
    instances, clients = proxy_of(consumer_instances_max="1")
    async with instances.expiring():
        instances.create("g", {}, clients, "")
        with pytest.raises(RestError, match=r"consumer\.instances\.max") as refusal:
            instances.create("g", {}, clients, "")
        assert refusal.value.status == 503


async def test_all_instances_are_closed_at_the_end() -> None:
    instances, clients = proxy_of()
    async with instances.expiring():
        instances.create("g", {}, clients, "")
        assert len(instances) == 1
    assert len(instances) == 0


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"format": "string"}, 422),
        ({"format": 7}, 422),
        ({"fetch.min.bytes": 0}, 40001),
        ({"fetch.min.bytes": True}, 40001),
        ({"consumer.request.timeout.ms": "soon"}, 40001),
        ({"auto.offset.reset": "never"}, 42204),
        ({"auto.commit.enable": "maybe"}, 42204),
        ({"group.id": "other"}, 42204),
        ({"session.timeout.ms": 3_600_000, "max.poll.interval.ms": 1}, 42204),
        ({"name": 7}, 422),
        ({"name": ""}, None),
    ],
)
async def test_settings_are_checked_before_a_consumer_is_created(
    given: dict[str, Any], code: int | None
) -> None:
    """RST-6"""
    instances, clients = proxy_of()
    async with instances.expiring():
        found = None
        try:
            instances.create("g", given, clients, "")
        except RestError as error:
            found = error.code
        assert found == code
        assert len(instances) == (1 if code is None else 0)


@pytest.mark.parametrize("group", [" ", "\t", "a\0b"])
async def test_a_group_without_a_name_does_not_end_the_process(group: str) -> None:
    instances, clients = proxy_of()
    async with instances.expiring():
        with pytest.raises(RestError) as refusal:
            instances.create(group, {}, clients, "")
        assert refusal.value.code == 42204


async def test_the_chosen_settings_are_used() -> None:
    instances, clients = proxy_of()
    given = {"format": "json", "responseMinBytes": "5", "requestWaitMs": 77}
    async with instances.expiring():
        name = instances.create("g", given, clients, "")
        settings = instances.find("g", name, "").settings
        assert (settings.format, settings.min_bytes, settings.timeout_ms) == ("JSON", 5, 77)


def test_defaults_are_confluents() -> None:
    settings = RestSettings()
    assert settings.consumer_instance_timeout_ms == 300_000
    assert settings.consumer_request_timeout_ms == 1_000
    assert settings.consumer_request_max_bytes == 64 << 20
