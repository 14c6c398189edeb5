"""Counters of requests."""

from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from headrace.http.metrics import HttpMetrics, http_families
from headrace.http.operations import Operation
from headrace.http.product import Product
from headrace.runtime.exposition import render


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body() * 2)


async def fail(request: Request) -> Response:
    raise ZeroDivisionError


def serving(metrics: HttpMetrics) -> Any:
    operations = [
        Operation("POST", "/echo/{name}", echo, "Returns it twice."),
        Operation("GET", "/echo/{name}", fail, "Fails."),
    ]
    return Product(title="Test", operations=operations, families=list, metrics=metrics)


async def ask(metrics: HttpMetrics, method: str, path: str, body: bytes = b"") -> None:
    transport = httpx2.ASGITransport(serving(metrics), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        await client.request(method, path, content=body)


async def test_bodies_are_counted_in_both_directions_under_the_path_as_described() -> None:
    metrics = HttpMetrics()
    await ask(metrics, "POST", "/echo/a", b"12345")
    await ask(metrics, "POST", "/echo/b", b"1")
    (counts,) = metrics.operations.values()
    assert set(metrics.operations) == {"POST /echo/{name}"}
    assert (counts.statuses, counts.bytes_in, counts.bytes_out) == ({200: 2}, 6, 12)
    assert (counts.durations.count, metrics.under_way) == (2, 0)


async def test_an_exception_counts_as_a_server_error() -> None:
    metrics = HttpMetrics()
    await ask(metrics, "GET", "/echo/a")
    assert metrics.operations["GET /echo/{name}"].statuses == {500: 1}


@pytest.mark.parametrize("path", ["/", "/made/up", "/made/up/by/a/client"])
async def test_clients_can_make_no_operations_up(path: str) -> None:
    metrics = HttpMetrics()
    await ask(metrics, "PATCH", path)
    assert set(metrics.operations) == {"none"}


async def test_the_page_has_a_line_for_each_operation_and_status() -> None:
    metrics = HttpMetrics()
    await ask(metrics, "POST", "/echo/a", b"1")
    text = "".join(render(http_families("x", metrics)))
    assert 'x_answers_total{operation="POST /echo/{name}",status="200"} 1\n' in text
    assert 'x_duration_milliseconds_count{operation="POST /echo/{name}"} 1\n' in text
