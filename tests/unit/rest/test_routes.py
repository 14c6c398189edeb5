"""The whole application, without a broker."""

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import httpx2
import pytest

from headrace.http.access import Authentication, KnownToken, TokenFile
from headrace.http.operations import Operation
from headrace.rest.routes import application, operations_of
from headrace.rest.service import Service
from headrace.rest.settings import settings_of


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    found = Service(settings_of({"bootstrap.servers": "127.0.0.1:1", "client.timeout.ms": "300"}))
    async with found.running():
        yield found


def client(app: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://proxy")


@pytest.mark.parametrize("path", ["/topics", "/brokers", "/v3/clusters", "/ready"])
async def test_a_broker_without_an_answer_is_reported(service: Service, path: str) -> None:
    async with client(application(service)) as asking:
        answer = await asking.get(path)
    assert (answer.status_code, answer.json()["error_code"]) == (503, 50302)
    assert "did not answer" in answer.json()["message"]


async def test_the_proxy_itself_is_healthy_all_the_same(service: Service) -> None:
    async with client(application(service)) as asking:
        assert (await asking.get("/health")).json() == {"status": "healthy"}


async def test_requests_are_counted_by_operation_and_status(service: Service) -> None:
    async with client(application(service)) as asking:
        await asking.get("/health")
        await asking.post("/topics/a", content=b"{}")
        await asking.post("/topics/b", content=b"{}")
        await asking.get("/nothing/here")
        page = (await asking.get("/metrics")).text
    lines = [line for line in page.splitlines() if line.startswith("headrace_rest_answers_total")]
    assert lines == [
        'headrace_rest_answers_total{operation="GET /health",status="200"} 1',
        'headrace_rest_answers_total{operation="POST /topics/{topic}",status="415"} 2',
        'headrace_rest_answers_total{operation="none",status="404"} 1',
    ]
    assert "headrace_rest_records_written_total 0" in page
    assert "headrace_rest_push_clients 0" in page


async def test_rejected_requests_are_counted_and_others_by_operation(service: Service) -> None:
    authentication = Authentication(
        tokens=TokenFile((KnownToken("ada", sha256(b"secret").digest()),), False)
    )
    async with client(application(service, authentication)) as asking:
        await asking.get("/openapi.json")
        headers = {"Authorization": "Bearer secret"}
        await asking.get("/openapi.json", headers=headers)
        page = (await asking.get("/metrics", headers=headers)).text
    assert '_answers_total{operation="none",status="401"} 1' in page
    assert '_answers_total{operation="GET /openapi.json",status="200"} 1' in page


async def test_the_root_is_a_page_for_people_and_nothing_for_programs(service: Service) -> None:
    async with client(application(service)) as asking:
        assert (await asking.get("/")).json() == {}
        page = await asking.get("/", headers={"Accept": "text/html"})
    assert "/v3/clusters/{cluster_id}/topics" in page.text


async def test_every_operation_is_described(service: Service) -> None:
    async with client(application(service)) as asking:
        paths = (await asking.get("/openapi.json")).json()["paths"]
    described = {(method, path) for path, methods in paths.items() for method in methods}
    assert {(one.method.lower(), one.path) for one in operations_of(service)} <= described


async def test_other_parts_add_operations_of_their_own(service: Service) -> None:
    from starlette.responses import PlainTextResponse

    async def push(_: Any) -> PlainTextResponse:
        return PlainTextResponse("pushed")

    more = [Operation("GET", "/extras/{topic}", push, "Push.")]
    async with client(application(service, more_operations=more)) as asking:
        assert (await asking.get("/extras/t")).text == "pushed"
        assert "/extras/{topic}" in (await asking.get("/openapi.json")).json()["paths"]


async def test_a_closed_door_answers_in_the_proxys_shape(service: Service) -> None:
    async with client(application(service, Authentication(tokens=TokenFile((), False)))) as asking:
        refused = await asking.get("/topics")
        assert refused.json()["error_code"] == refused.status_code == 401
        assert (await asking.get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("listed", "status"), [("", 403), ("https://a.example", 403), ("https://b.example", 404)]
)
async def test_pages_change_something_only_if_their_origin_is_listed(
    listed: str, status: int
) -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1", "access.control.allow.origin": listed}
    service = Service(settings_of(properties))
    async with service.running(), client(application(service)) as asking:
        path, headers = "/consumers/g/instances/i", {"Origin": "https://b.example"}
        assert (await asking.delete(path, headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("PUT", "/topics", 405), ("POST", "/topics/t", 415)],
)
async def test_unknown_paths_are_answered_in_the_shape_of_the_proxy(
    service: Service, method: str, path: str, status: int
) -> None:
    async with client(application(service)) as asking:
        answer = await asking.request(method, path)
    assert answer.json()["error_code"] == answer.status_code == status


async def test_the_description_promises_the_status_that_is_answered(service: Service) -> None:
    async with client(application(service)) as asking:
        paths = (await asking.get("/openapi.json")).json()["paths"]
    group = "/v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}"
    for path, method in (
        (f"{group}/offsets:alter", "post"),
        (f"{group}/offsets:delete", "post"),
        (group, "delete"),
        ("/v3/clusters/{cluster_id}/topics/{topic_name}/configs/{name}", "put"),
        ("/consumers/{group}/instances/{instance}", "delete"),
        ("/consumers/{group}/instances/{instance}/offsets", "post"),
    ):
        answers = paths[path][method]["responses"]
        assert "200" not in answers
        assert answers["204"] == {"description": "Done."}
    assert "207" in paths["/v3/clusters/{cluster_id}/records"]["post"]["responses"]
