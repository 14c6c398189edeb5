"""`headrace serve` as a process: its answers to clients, and the data that it protects."""

import contextlib
import io
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from benchmarks.processes import resident_megabytes
from headrace.errors import CannotListen
from headrace.lake.catalog import Lake, MergedViewEntry
from tests.builders.lake_services import (
    COUNTS,
    ORDERS,
    SPEED,
    append,
    counts,
    covering,
    orders,
    replace,
    speed_rows,
)
from tests.processes.nodes import eventually

ROWS = 50_000
TOKEN = "a-token-of-some-length"
UNDER_WAY = 'headrace_serving_under_way{operation="query"}'
ENDLESS = "SELECT max(i) FROM range(1000000000000) AS t(i)"


class Server:
    """A server process over a lake."""

    def __init__(self, lake: Path, *options: str) -> None:
        command = [sys.executable, "-m", "headrace.cli.main", "serve", "--lake", str(lake)]
        command += ["--listen", "127.0.0.1:0", "--refresh", "0.1", *options]
        self.log = lake / "serve.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert "Headrace serves tables on" in first, self.log.read_text()
        self.url = first.split()[-1]
        self.client = httpx2.Client(base_url=self.url, timeout=120)

    def query(self, sql: str, **parameters: Any) -> httpx2.Response:
        return self.client.post("/query", content=sql, params=parameters)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        answer = self.query(sql)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found

    def figure(self, name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.client.get("/metrics").text, re.M)
        return float(found[1]) if found else 0.0

    def stop(self) -> int:
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def serving(lake: Path, *options: str) -> Iterator[Server]:
    server = Server(lake, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("served"))
    append(made.create("refined.orders", ORDERS, comment="What was bought"), orders(*range(ROWS)))
    append(made.create("raw.secrets", ORDERS), orders(1))
    return made


@pytest.fixture(scope="module")
def server(lake: Lake) -> Iterator[Server]:
    options = ("--memory", "256MB", "--timeout", "2", "--concurrency", "2")
    with serving(lake.root, *options) as started:
        yield started


def test_a_query_is_answered_as_json(server: Server) -> None:
    answer = server.query("SELECT count(*) AS n, max(item) AS last FROM orders")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "columns": [{"name": "n", "type": "BIGINT"}, {"name": "last", "type": "VARCHAR"}],
        "rows": [{"n": ROWS, "last": "item-9999"}],
        "row_count": 1,
        "cut": None,
        "versions": {"refined.orders": 1},
        "scanned": [],
    }


def test_a_query_comes_as_address_text_or_json(server: Server) -> None:
    body = {"sql": "SELECT id FROM orders WHERE id = $id", "parameters": {"id": 7}, "limit": 5}
    listed = {"sql": "SELECT id FROM orders WHERE id = ?", "parameters": [7]}
    answers = [
        server.client.get("/query", params={"sql": "SELECT id FROM orders WHERE id = 7"}),
        server.query("SELECT id FROM orders WHERE id = 7"),
        server.client.post("/query", json=body),
        server.client.post("/query", json=listed),
        server.client.post("/query", data={"SELECT id FROM orders WHERE id": " 7"}),
    ]
    assert [answer.json().get("rows") for answer in answers[:4]] == [[{"id": 7}]] * 4
    assert answers[4].status_code == 400


@pytest.mark.parametrize("way", ["header", "parameter"])
def test_an_answer_comes_as_arrow(server: Server, way: str) -> None:
    arrow = "application/vnd.apache.arrow.stream"
    headers = {"Accept": arrow} if way == "header" else {}
    parameters = {"sql": "SELECT * FROM orders WHERE id < 3 ORDER BY id"}
    if way == "parameter":
        parameters["format"] = "arrow"
    answer = server.client.get("/query", params=parameters, headers=headers)
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert answer.headers["content-type"] == arrow
    assert table.equals(orders(0, 1, 2))


def test_an_answer_comes_as_csv(server: Server) -> None:
    answer = server.query("SELECT * FROM orders WHERE id < 2 ORDER BY id", format="csv")
    assert answer.text == '"id","item"\n0,"item-0"\n1,"item-1"\n'
    assert answer.headers["headrace-versions"] == "refined.orders=1"


def test_rows_beyond_the_limit_are_left_out_and_the_cut_is_reported(server: Server) -> None:
    by_default, by_wish = server.query("FROM orders"), server.query("FROM orders", limit=3)
    found = [(one.json()["row_count"], one.json()["cut"]) for one in (by_default, by_wish)]
    assert found == [(10_000, "rows"), (3, "rows")]
    assert server.query("FROM orders", limit=2_000_000).status_code == 400


def test_rows_are_looked_up_by_key(server: Server) -> None:
    one = server.client.get("/tables/refined.orders/rows", params={"id": 77}).json()
    two = server.client.get("/tables/orders/rows", params={"id": [7, 8], "item": "item-8"}).json()
    none = server.client.get("/tables/orders/rows", params={"id": -1}).json()
    assert one["rows"] == [{"id": 77, "item": "item-77"}]
    assert two["rows"] == [{"id": 8, "item": "item-8"}]
    assert (none["rows"], none["versions"]) == ([], {"refined.orders": 1})


def test_a_table_is_described(server: Server) -> None:
    found = server.client.get("/tables/orders").json()
    assert (found["name"], found["comment"]) == ("refined.orders", "What was bought")
    assert found["columns"][0] == {"name": "id", "type": "BIGINT"}
    assert found["newest_version"] == 1


def test_only_the_zones_that_were_asked_for_are_there(server: Server) -> None:
    listed = {one["name"] for one in server.client.get("/tables").json()["tables"]}
    assert "raw.secrets" not in listed
    assert server.query("FROM raw.secrets").status_code == 404
    assert server.client.get("/tables/raw.secrets").status_code == 404
    assert server.client.get("/tables/raw.secrets/rows").status_code == 404


@pytest.mark.parametrize(
    ("sql", "status", "error"),
    [
        ("SELEC 1", 400, "invalid_query"),
        ("SELECT nothing FROM orders", 400, "invalid_query"),
        ("SELECT CAST('x' AS INT)", 400, "invalid_query"),
        ("SELECT $x", 400, "invalid_query"),
        ("  ", 400, "bad_request"),
        ("FROM nothing", 404, "table_not_found"),
        ("DROP VIEW refined.orders", 403, "not_read_only"),
        ("SELECT 1; SELECT 2", 403, "not_read_only"),
        ("COPY orders TO '/tmp/stolen.csv'", 403, "not_read_only"),
        ("ATTACH '/tmp/other.db'", 403, "not_read_only"),
        ("SET memory_limit = '1TB'", 403, "not_read_only"),
        ("SELECT * FROM read_csv('/etc/passwd')", 403, "not_read_only"),
        ("SELECT * FROM arrow_scan(1, 2, 3)", 403, "not_read_only"),
        ("FROM '/etc/passwd'", 404, "table_not_found"),
        ("FROM store.published", 404, "table_not_found"),
        ("SELECT error('mine')", 400, "invalid_query"),
    ],
)
def test_forbidden_statements_are_refused(
    server: Server, sql: str, status: int, error: str
) -> None:
    answer = server.query(sql)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


@pytest.mark.parametrize(
    ("sql", "statuses"),
    [
        (ENDLESS, {408}),
        ("WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) FROM t", {200, 408}),
        ("WITH RECURSIVE t AS (SELECT 1 UNION ALL FROM t) SELECT count(*) FROM t", {408}),
        ("SELECT sum(a.id * b.id) FROM orders a, orders b, orders c", {408}),
        ("SELECT * FROM orders a, orders b ORDER BY a.id * b.id", {408, 413}),
        ("SELECT list(i) FROM range(1000000000000) AS t(i)", {408, 413}),
        ("SELECT range(1000000000)", {408, 413}),
        ("SELECT length(repeat('x', 4000000000))", {408, 413}),
        ("SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)", {408, 413}),
        ("SELECT max(length(repeat('x', i * 1000000))) FROM range(500) t(i)", {200, 408, 413}),
        ("SELECT sleep_ms(100000)", {408}),
        ("SELECT * FROM range(1000000000000)", {200}),
        ("SELECT repeat('x', 10000000) FROM range(1000)", {200, 408, 413}),
    ],
)
def test_no_query_crashes_the_server(server: Server, sql: str, statuses: set[int]) -> None:
    answer = server.query(sql)
    assert answer.status_code in statuses, answer.text[:300]
    eventually(lambda: server.rows("SELECT count(*) AS n FROM orders") == [{"n": ROWS}])
    assert resident_megabytes(server.process.pid) < 2_000


def asked_by_socket(server: Server, sql: str) -> socket.socket:
    """A connection that has asked, and does not read the answer yet."""
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=120)
    path = sql.replace(" ", "+")
    connection.sendall(f"GET /query?sql={path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


def test_excess_queries_are_refused_while_lookups_continue(server: Server) -> None:
    eventually(lambda: server.figure(UNDER_WAY) == 0)
    with contextlib.ExitStack() as opened:
        askers = [
            opened.enter_context(contextlib.closing(asked_by_socket(server, ENDLESS)))
            for _ in range(80)
        ]
        found = server.client.get("/tables/orders/rows", params={"id": 5}).json()
        statuses = Counter(int(one.recv(1 << 16).split()[1]) for one in askers)
    assert found["rows"] == [{"id": 5, "item": "item-5"}]
    assert statuses.keys() == {408, 503}
    assert statuses[503] >= 14


def test_a_client_that_disconnects_frees_the_thread(lake: Lake) -> None:
    with serving(lake.root, "--timeout", "3600") as server:
        asked = asked_by_socket(server, ENDLESS)
        eventually(lambda: server.figure(UNDER_WAY) == 1)
        asked.close()
        eventually(lambda: server.figure(UNDER_WAY) == 0)


def test_ctrl_c_stops_queries_that_run(lake: Lake) -> None:
    server = Server(lake.root, "--timeout", "3600")
    with contextlib.closing(asked_by_socket(server, ENDLESS)):
        eventually(lambda: server.figure(UNDER_WAY) == 1)
        assert server.stop() == 0


def test_a_large_body_is_refused(server: Server) -> None:
    assert server.query("SELECT '" + "x" * (1 << 20) + "'").status_code == 413


def test_the_page_of_the_interface_lists_every_path(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        *("/query", "/tables", "/tables/{name}", "/tables/{name}/rows"),
        *("/health", "/ready", "/metrics", "/openapi.json"),
    }


def test_health_and_readiness_are_reported(server: Server) -> None:
    answers = [server.client.get(path).json() for path in ("/health", "/ready")]
    assert answers == [{"status": "healthy"}, {"status": "ready"}]


def test_new_versions_are_seen_while_questions_are_asked(tmp_path: Path) -> None:
    """Each answer has as many rows as its version had; versions never go back."""
    table = Lake(tmp_path).create("refined.orders", ORDERS)
    expected = {append(table, orders(0)): 1}
    wrong: list[Any] = []
    with serving(tmp_path) as server:
        stop = threading.Event()

        def ask() -> None:
            last = 0
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                while not stop.is_set():
                    sql = {"sql": "SELECT count(*) AS n FROM orders"}
                    found = client.get("/query", params=sql).json()
                    version, n = found["versions"]["refined.orders"], found["rows"][0]["n"]
                    if expected.get(version, n) != n or version < last:
                        wrong.append(found)
                    last = version

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        for step in range(1, 20):
            rows = orders(*range(step + 1))
            expected[table.version + 1] = step + 1
            if step % 3:
                append(table, orders(step))
            else:
                replace(table, rows)
            time.sleep(0.03)
        newest = table.version
        eventually(
            lambda: (
                server.query("SELECT 1 FROM orders").json()["versions"]["refined.orders"] == newest
            )
        )
        stop.set()
        for asker in askers:
            asker.join()
    assert wrong == []


def test_a_merged_view_is_exact_while_batches_run(tmp_path: Path) -> None:
    """ARC-1: batch + speed = truth, at every moment that anyone asks."""
    made = Lake(tmp_path)
    batch, speed = made.create("refined.batch", COUNTS), made.create("refined.speed", SPEED)
    view = MergedViewEntry("refined.total", ("key",), {"n": "sum"}, batch.name, speed.name)
    made.put_view(view.name, view)
    allowed = {0}
    wrong: list[int] = []
    with serving(tmp_path) as server:
        stop = threading.Event()

        def ask() -> None:
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                while not stop.is_set():
                    sql = {"sql": "SELECT coalesce(sum(n), 0)::BIGINT AS n FROM total"}
                    found = client.get("/query", params=sql).json()["rows"][0]["n"]
                    if found not in allowed:
                        wrong.append(found)

        asker = threading.Thread(target=ask)
        asker.start()
        for version in range(1, 25):
            # Powers of two: every wrong combination is a sum that no moment had.
            allowed.add(2**version - 1)
            append(speed, speed_rows([("a", 2 ** (version - 1), version)]))
            if version % 4 == 0:
                replace(batch, counts({"a": 2**version - 1}), covering(version))
                speed.delete(f"_commit_version <= {version}")
        eventually(lambda: server.rows("SELECT n FROM total") == [{"n": 2**24 - 1}])
        stop.set()
        asker.join()
    assert wrong == []


def test_only_clients_with_a_token_are_answered(lake: Lake, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    with serving(lake.root, "--token-file", str(tokens)) as server:
        paths = ("/query?sql=SELECT+1", "/tables", "/metrics", "/openapi.json", "/nothing")
        refused = [server.client.get(path).status_code for path in paths]
        opened = [server.client.get(path).status_code for path in ("/health", "/ready")]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        granted = server.client.get("/tables", headers=headers).status_code
        log = server.log.read_text()
    assert (refused, opened, granted) == ([401] * 5, [200] * 2, 200)
    assert TOKEN not in log


def test_every_zone_is_served_on_request(lake: Lake) -> None:
    with serving(lake.root, "--zones", "all") as server:
        assert server.rows("SELECT id FROM raw.secrets") == [{"id": 1}]


def test_a_port_that_is_taken_is_named(server: Server, lake: Lake) -> None:
    address = server.url.removeprefix("http://")
    command = [sys.executable, "-m", "headrace.cli.main", "serve", "--lake", str(lake.root)]
    failed = subprocess.run(
        [*command, "--listen", address], capture_output=True, text=True, timeout=60, check=False
    )
    assert failed.returncode == CannotListen.exit_code
    assert failed.stderr == f"headrace: cannot listen on {address}, address already in use\n"


def test_ctrl_c_ends_it_cleanly(lake: Lake) -> None:
    server = Server(lake.root)
    server.rows("SELECT 1 AS n")
    assert (server.stop(), server.log.read_text()) == (0, "")


def test_an_open_address_is_warned_of(lake: Lake) -> None:
    server = Server(lake.root, "--listen", "0.0.0.0:0")
    try:
        assert "open to the network" in server.log.read_text()
    finally:
        server.stop()


def test_answers_are_counted(server: Server) -> None:
    name = 'headrace_serving_answers_total{operation="query",status="200"}'
    before = server.figure(name)
    server.rows("SELECT 1 AS n")
    assert server.figure(name) == before + 1
