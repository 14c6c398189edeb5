"""The port at which Prometheus reads the state of a run."""

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from headrace.errors import CannotListen
from headrace.pipelines.running.driving.metrics_port import serving
from headrace.pipelines.status import FlowStatus, PipelineStatus


def text_at(address: str) -> str:
    with urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_each_scrape_shows_the_current_status() -> None:
    stands: list[PipelineStatus] = []
    with serving("127.0.0.1", 0, lambda: stands) as address:
        assert "headrace_pipelines" not in text_at(address)
        flow = FlowStatus(flow="raw.orders", target="raw.orders", state="running", rows_in=5)
        stands.append(PipelineStatus(pipeline="shop", state="running", flows=(flow,)))
        shown = text_at(address)
        assert '"raw.orders",target="raw.orders"} 5' in shown
        assert "process_cpu_seconds_total" in shown
        assert '"status":"ok"' in text_at(address.replace("/metrics", "/ready"))
        stands[:] = []
        with pytest.raises(HTTPError, match="503"):
            text_at(address.replace("/metrics", "/ready"))
    with pytest.raises(OSError, match="refused"):
        text_at(address)


def test_a_port_in_use_is_reported_with_advice() -> None:
    with serving("127.0.0.1", 0, list) as address:
        port = int(address.rpartition(":")[2].partition("/")[0])
        with (
            pytest.raises(CannotListen, match=rf"127\.0\.0\.1:{port}.*--metrics"),
            serving("127.0.0.1", port, list),
        ):
            pass
