"""`headrace pipelines` as far as it needs neither a broker nor Spark."""

import io
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec
import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError

from headrace.cli import pipelines
from headrace.cli.main import main
from headrace.cli.pipeline_progress import (
    Rates,
    Screen,
    fitted_text,
    outcome_text,
    print_backfilled,
    print_status,
    progress_text,
    rounded,
    whole_text,
)
from headrace.lake.catalog import Lake
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.running.correcting.redrive import Redriven
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.state.reports import Outcome
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus
from headrace.spark.tables.plans import Position
from tests.builders.checkpoints import flow_at
from tests.builders.declared_pipelines import SETTINGS, write_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"


def call(*arguments: str | Path) -> object:
    return pipelines.command.main([str(one) for one in arguments], standalone_mode=False)


def test_a_new_pipeline_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call("init", tmp_path / "shop")
    assert call("check", tmp_path / "shop", "--offline", "--no-spark") == 0
    assert capsys.readouterr().out.endswith("shop: 1 source, 3 datasets, 2 flows: fine\n")


def test_a_wrong_pipeline_fails_the_check_before_spark_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = "headrace.pipelines.spark_sessions.open_spark"
    monkeypatch.setattr(opening, lambda *_, **__: pytest.fail("started"))
    folder = write_folder(tmp_path, {"a.sql": TABLE.replace("orders", "odrers")})
    assert call("check", folder, "--offline") == 1
    output = capsys.readouterr()
    assert "a.sql:1: there is no sources.odrers" in output.err
    assert "did you mean sources.orders?" in output.err
    assert output.out.endswith("1 problem\n")


def test_an_unreachable_broker_fails_the_check_with_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Port 1 is reserved and refuses at once."""
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    assert call("check", folder, "--no-spark", "--bootstrap", "127.0.0.1:1") == 1
    output = capsys.readouterr()
    assert "cannot reach 127.0.0.1:1: connection refused; start a node with" in output.err
    assert "`bootstrap` of pipeline.toml or with --bootstrap; or check with --offline" in output.err
    assert output.out.endswith("1 problem\n")


@pytest.mark.parametrize(
    ("named", "arguments", "reported"),
    [
        ("127.0.0.1:2", [], 1),
        ("127.0.0.1:2", ["--bootstrap", "127.0.0.1:1"], 0),
        ("127.0.0.1:1", [], 0),
        (None, [], 0),
    ],
)
def test_brokers_of_a_variable_that_override_the_file_are_reported(
    named: str | None,
    arguments: list[str],
    reported: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variable that was set long ago must not choose another cluster in silence."""
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "127.0.0.1:1")
    line = "" if named is None else f'bootstrap = "{named}"'
    settings = SETTINGS.replace("[sources", f"{line}\n[sources")
    folder = write_folder(tmp_path, {"a.sql": TABLE}, settings)
    call("check", folder, "--no-spark", "--offline", "--json", *arguments)
    output = capsys.readouterr()
    text = "shop: the brokers are 127.0.0.1:1, by HEADRACE_BOOTSTRAP, not 127.0.0.1:2 as in"
    assert output.err.count(text) == reported
    assert json.loads(output.out)[0]["problems"] == []


def test_programs_get_the_problems_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE.replace("orders", "odrers")})
    call("check", folder, "--offline", "--no-spark", "--json")
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["problems"][0]["file"], report["problems"][0]["line"]) == ("a.sql", 1)
    assert report["edges"] == [{"from": "sources.odrers", "to": "raw.x", "stream": True}]


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="headrace pipelines init NAME"):
        call("check", tmp_path)


def test_a_check_reports_a_renamed_input_of_a_flow_that_has_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = "CREATE STREAMING TABLE staging.y AS SELECT * FROM STREAM({0});"
    folder = write_folder(tmp_path, {"a.sql": TABLE, "b.sql": second.format("raw.x")})
    lake = Lake(folder / "lake")
    for name in ("raw.x", "staging.y"):
        lake.create(name, pa.schema([("id", pa.int64())]), pipeline="shop")
    state = PipelineState.of(folder / "lake", "shop").flow("staging.y", 1)
    flow_at(state.directory, Position("raw.x", lake.table("raw.x").table_id, 1))
    assert call("check", folder, "--offline", "--no-spark") == 0
    renamed = {"a.sql": TABLE.replace("raw.x", "raw.z"), "b.sql": second.format("raw.z")}
    write_folder(tmp_path, renamed)
    assert call("check", folder, "--offline", "--no-spark") == 1
    assert "b.sql:1: the checkpoint of the flow staging.y is for raw.x" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "run", "status", "replay"])
def test_a_lake_in_an_object_store_is_rejected(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = str(write_folder(tmp_path / "shop", {"a.sql": TABLE}))
    assert main(["pipelines", command, folder, "--lake", "s3://bucket/lake"]) == 2
    assert "s3://bucket/lake is not a folder" in capsys.readouterr().err
    assert not (tmp_path / "s3:").exists()


def test_a_graph_is_text_or_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    call("graph", folder)
    assert capsys.readouterr().out.startswith("sources.orders  (topic orders, json)\n└── raw.x")
    call("graph", folder, "--svg", tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text().startswith("<svg ")
    call("graph", folder, "--svg", "-")
    assert capsys.readouterr().out.startswith("<svg ")


def test_the_status_of_a_pipeline_that_never_ran_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    call("status", folder)
    reported = capsys.readouterr().out
    assert reported.startswith("shop: never run\n  lake: ")
    assert reported.endswith(f"\n  files in its folder: {load(folder, {}).fingerprint}\n")
    call("stop", folder)
    assert capsys.readouterr().out.startswith("nothing is running with the lake of pipeline.toml")
    call("stop", folder, "--lake", tmp_path / "other")
    assert capsys.readouterr().out == f"nothing is running with the lake {tmp_path / 'other'}\n"


def test_a_status_compares_the_folder_with_the_files_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ARC-5: the status shows whether a changed file is already used."""
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    runs = load(folder, {}).fingerprint
    reported = PipelineStatus(pipeline="shop", state="done", version="3", fingerprint=runs)
    PipelineState.of(folder / "lake", "shop").write_status(reported)
    call("status", folder)
    latest = f"  files of the latest run: {runs} (version 3); the folder"
    assert f"{latest} has the same files\n" in capsys.readouterr().out
    write_folder(tmp_path, {"a.sql": f"{TABLE} -- fixed"})
    call("status", folder)
    others = load(folder, {}).fingerprint
    assert f"{latest} has changed since, {others}, and the next" in capsys.readouterr().out
    call("status", folder, "--json")
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["fingerprint"], document["folder_fingerprint"]) == (runs, others)


@pytest.mark.parametrize(
    "other", [["--keep", "raw"], ["--sinks", "again"], ["--no-switch"], ["--expect-equal"]]
)
def test_replay_with_back_rejects_other_options(other: list[str], tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    with pytest.raises(click.UsageError, match="no other option"):
        call("replay", folder, "--back", *other)


@pytest.mark.parametrize("command", ["redrive", "backfill"])
def test_an_unknown_table_is_reported_before_spark_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    with pytest.raises(PipelineError, match=r"did you mean raw\.x"):
        call(command, folder, "x")
    assert "starting Spark" not in capsys.readouterr().err


@pytest.mark.parametrize(("refused", "is_reported"), [(1, True), (3, False)])
def test_a_redrive_that_stored_rows_reports_when_readers_get_them(
    refused: int,
    is_reported: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redriven = Redriven(taken=3, refused=refused)
    monkeypatch.setattr("headrace.pipelines.commands.redrive", lambda *_, **__: redriven)
    call("redrive", tmp_path, "raw.x")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"3 rows retried from quarantine, {refused} of them rejected again"
    follows = "readers of raw.x update with the next run, or now if the pipeline is running"
    assert lines[1:] == ([follows] if is_reported else [])


STATUS = PipelineStatus(
    pipeline="shop",
    state="running",
    mode="continuous",
    updated_at="2026-03-01T12:00:00+00:00",
    flows=(
        FlowStatus(
            flow="raw.x",
            target="raw.x",
            zone="raw",
            state="retrying",
            rows_in=1200,
            rows_out=1190,
            quarantined=10,
            lag=5,
            error="the broker is away",
        ),
    ),
    views=(ViewStatus(view="refined.n", zone="refined", rows=3, last_duration_ms=12),),
)


def test_progress_is_one_line_by_zones() -> None:
    """ARC-5: what runs is seen while it runs."""
    assert progress_text(STATUS, 300.4) == (
        "shop: raw 1,200/1,190  refined 3/3  in/out  quarantined 10  lag 5  300 rows/s"
    )


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (80, "shop: raw 1,200/1,190  refined 3/3  in/out  quarantined 10  lag 5  300 rows/s"),
        (70, "shop: raw 1.2k/1.2k  refined 3  quarantined 10  lag 5  300 rows/s"),
        (60, "shop: raw 1.2k>refined 3  quarantined 10  lag 5  300 rows/s"),
        (55, "shop: refined 3  quarantined 10  lag 5  300 rows/s"),
        (30, "shop 300 rows/s"),
        (14, "1 pipeline  300 rows/s"),
    ],
)
def test_progress_is_shortened_to_the_width_of_the_terminal(width: int, text: str) -> None:
    assert fitted_text([STATUS], [300.4], width)[0] == text


@pytest.mark.parametrize("width", [120, 90, 80, 50])
def test_progress_reports_failed_flows_while_others_continue(width: int) -> None:
    flows = [msgspec.structs.replace(flow, state="failed") for flow in STATUS.flows * 2]
    status = msgspec.structs.replace(STATUS, flows=tuple(flows))
    assert fitted_text([status], [300.4], width)[0].endswith("  2 flows failed, see status")


def test_progress_and_status_report_stale_tables_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flows = [msgspec.structs.replace(flow, stale="raw.x is old") for flow in STATUS.flows * 2]
    status = msgspec.structs.replace(STATUS, flows=tuple(flows), views=())
    assert progress_text(status, 300.4).endswith("  1 table stale, see status")
    print_status(status)
    assert capsys.readouterr().err.count("raw.x is old") == 1


def test_progress_and_status_report_a_change_of_architecture(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = msgspec.structs.replace(STATUS, architecture="lambda", moving=("refined.n",))
    assert progress_text(status, 300.4).endswith("  1 view moving to lambda, see status")
    print_status(status)
    assert "refined.n is moving to lambda: readers see" in capsys.readouterr().out


def test_status_explains_that_a_redrive_does_not_lower_quarantined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "which a redrive does not reduce; for the current rows: headrace tables"
    print_status(msgspec.structs.replace(STATUS, lake="there"))
    assert f"{said} list --lake there\n" in capsys.readouterr().out
    flows = [msgspec.structs.replace(flow, quarantined=0) for flow in STATUS.flows]
    print_status(msgspec.structs.replace(STATUS, flows=tuple(flows)))
    assert said not in capsys.readouterr().out


@pytest.mark.parametrize(("is_limited", "since"), [(False, ""), (True, " from that time on")])
def test_a_backfill_without_older_records_reports_it(
    is_limited: bool, since: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing, some = Outcome(is_idle=True), Outcome(rows_in=3, rows_out=2, quarantined=1)
    print_backfilled({"f": nothing}, is_limited=is_limited)
    reported = f"f: no unread older records{since} in its topics\n"
    assert capsys.readouterr().out == reported
    print_backfilled({"f": nothing, "g": some}, is_limited=is_limited)
    first, *table = capsys.readouterr().out.splitlines()
    assert first + "\n" == reported
    assert table[-1].split() == ["g", "3", "2", "1", "0"]


def test_the_first_line_does_not_count_rows_of_earlier_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.cli.pipeline_progress._PLAIN_EVERY_S", 0.0)
    screen = Screen()
    screen.show([cast(Any, SimpleNamespace(status=STATUS))])
    assert capsys.readouterr().out.endswith("  0 rows/s\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_message_beside_the_live_line_has_its_own_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Screen() as screen:
        screen.show([cast(Any, SimpleNamespace(status=STATUS))])
        log = logging.getLogger("headrace.pipelines")
        log.warning("flow failed", extra={"flow": "raw.x"})
    shown, _, logged = terminal.getvalue().partition("headrace: ")
    assert "rows/s" in shown
    assert shown.endswith(" \r"), "the line was emptied before"
    assert logged == "flow failed (flow=raw.x)\n"


PY4J_ON_THE_ROOT_LOGGER = logging.makeLogRecord(
    {
        "name": "root",
        "pathname": "/lib/py4j/java_gateway.py",
        "levelno": logging.ERROR,
        "msg": "Exception while sending command.",
    }
)


def test_a_lost_spark_is_one_line_and_other_errors_keep_their_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logging.getLogger("headrace.pipelines")
    with Screen():
        logging.getLogger("py4j.java_gateway").error("retry", exc_info=OSError("socket"))
        logging.getLogger().handle(PY4J_ON_THE_ROOT_LOGGER)
        log.error("view not refreshed", exc_info=Py4JNetworkError("Answer is empty"))
        log.error("tables not tidied", exc_info=ValueError("half of a note"))
    first, second, third, *trace = capsys.readouterr().err.splitlines()
    assert first == "headrace: view not refreshed"
    assert second == "headrace: Answer is empty"
    assert third == "headrace: tables not tidied"
    assert trace[-1] == "headrace: ValueError: half of a note"


def test_a_rate_is_steady_between_batches() -> None:
    rates = Rates()
    found = []
    for second in range(31):
        status = PipelineStatus(
            pipeline="shop",
            state="running",
            flows=(FlowStatus(flow="raw.x", rows_in=second // 5 * 500),),
        )
        found.append(rates.update([status], float(second))[0])
    assert set(found[15:]) == {100.0}


def test_a_line_that_was_shortened_stays_short() -> None:
    _, shape = fitted_text([STATUS], [300.4], 70)
    assert fitted_text([STATUS], [300.4], 200, shape) == fitted_text([STATUS], [300.4], 70)


def test_zones_are_in_order_even_if_another_flow_is_first() -> None:
    flows = [FlowStatus(flow=zone, zone=zone, rows_in=2, rows_out=1) for zone in ("own", "raw")]
    status = PipelineStatus(pipeline="p", state="running", flows=tuple(flows))
    assert outcome_text(status) == "p: raw 2/1  own 2/1  in/out"


def test_the_line_shows_all_zones_even_on_a_narrow_terminal() -> None:
    zones = {"raw": 1200, "staging": 1190, "trusted": 1100, "refined": 12}
    flows = [
        FlowStatus(flow=zone, zone=zone, rows_in=1201, rows_out=rows, quarantined=7, lag=0)
        for zone, rows in zones.items()
    ]
    status = PipelineStatus(pipeline="access-logs", state="running", flows=tuple(flows))
    text = "access-logs: raw 1.2k>1.2k>1.1k>refined 12  quarantined 28  lag 0  47 rows/s"
    assert fitted_text([status], [47.0], 79)[0] == text


def test_progress_of_several_pipelines_is_shortened_alike() -> None:
    assert fitted_text([STATUS] * 2, [300.4, 2e6], 40)[0] == "shop 300 rows/s   shop 2.0M rows/s"


def test_nothing_is_left_out_where_there_is_no_terminal() -> None:
    assert whole_text([STATUS] * 3, [300.4] * 3).count("raw 1,200/1,190  refined 3/3") == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (9_949, "9.9k"), (34_200, "34k"), (5.6e6, "5.6M")],
)
def test_large_numbers_are_rounded(number: float, text: str) -> None:
    assert rounded(number) == text


def test_a_status_shows_flows_views_and_failures(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(STATUS)
    output = capsys.readouterr()
    assert output.out.startswith("shop: running, continuous, as of 2026-03-01T12:00:00+00:00\n")
    assert "1,200" in output.out
    assert "refined.n" in output.out
    assert output.out.count("took ms") == 1
    assert output.err == "headrace: raw.x: the broker is away\n"


def test_a_status_fits_into_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    name, at = "staging.customer_transactions", "2026-03-01T12:00:00+00:00"
    flow = FlowStatus(
        flow=name,
        target=name,
        state="running",
        rows_in=123_456_789,
        rows_out=123_456_789,
        quarantined=1_234,
        lag=12_345,
        last_at=at,
        next_at=at,
        last_duration_ms=12_345,
    )
    print_status(PipelineStatus(pipeline="shop", state="running", flows=(flow,)))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(name)]
    table = [line for line in lines if not line.startswith("`quarantined`")]
    assert max(map(len, table)) <= 100


def test_a_run_with_once_rejects_the_metrics_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["pipelines", "run", "shop", "--once", "--metrics", "9645"]) == 2
    assert "--metrics goes with --continuous" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["99999", "shop", "0.0.0.0:", "host:port"])
def test_an_invalid_metrics_port_is_rejected(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipelines", "run", "shop", "--metrics", given]) == 1
    assert repr(given.rpartition(":")[2]) in capsys.readouterr().err


def test_a_pipeline_without_batches_is_waiting_for_its_first() -> None:
    """The first batch waits for Spark to load its classes, or for records."""
    flow = FlowStatus(flow="orders", zone="raw", state="running")
    begun = PipelineStatus(pipeline="shop", state="running", flows=(flow,))
    assert progress_text(begun, 0.0) == "shop: waiting for its first batch"
    counted = msgspec.structs.replace(flow, batches=1)
    done = msgspec.structs.replace(begun, flows=(counted, flow))
    assert progress_text(done, 0.0) == "shop: raw 0/0  in/out  0 rows/s"
