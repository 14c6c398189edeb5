"""`headrace pipelines` as far as it needs neither a broker nor Spark."""

import io
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec
import pytest

from headrace.cli import pipelines
from headrace.cli.main import main
from headrace.cli.pipeline_progress import (
    Screen,
    fitted_text,
    outcome_text,
    print_backfilled,
    print_status,
    progress_text,
    rounded,
    whole_text,
)
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.running.redriving import Redriven
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.state import PipelineState
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus
from tests.declared_pipelines import SETTINGS, write_folder

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


def test_a_broker_that_cannot_be_reached_fails_the_check_and_it_is_said_what_to_do(
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
    ("named", "arguments", "told"),
    [
        ("127.0.0.1:2", [], 1),
        ("127.0.0.1:2", ["--bootstrap", "127.0.0.1:1"], 0),
        ("127.0.0.1:1", [], 0),
        (None, [], 0),
    ],
)
def test_brokers_of_a_variable_that_displace_those_of_the_file_are_told(
    named: str | None,
    arguments: list[str],
    told: int,
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
    assert output.err.count(text) == told
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


def test_a_graph_is_text_or_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    call("graph", folder)
    assert capsys.readouterr().out.startswith("sources.orders  (topic orders, json)\n└── raw.x")
    call("graph", folder, "--svg", tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text().startswith("<svg ")
    call("graph", folder, "--svg", "-")
    assert capsys.readouterr().out.startswith("<svg ")


def test_a_pipeline_that_never_ran_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    call("status", folder)
    told = capsys.readouterr().out
    assert told.startswith("shop: never run\n  its lake is ")
    assert told.endswith(f"\n  the files in its folder are {load(folder, {}).fingerprint}\n")
    call("stop", folder)
    assert capsys.readouterr().out.startswith("nothing was running with the lake of pipeline.toml")
    call("stop", folder, "--lake", tmp_path / "other")
    assert capsys.readouterr().out == f"nothing was running with the lake {tmp_path / 'other'}\n"


def test_a_status_says_whether_the_folder_has_the_files_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ARC-5: someone who has changed a file sees whether it counts yet."""
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    runs = load(folder, {}).fingerprint
    told = PipelineStatus(pipeline="shop", state="done", version="3", fingerprint=runs)
    PipelineState.of(folder / "lake", "shop").write_status(told)
    call("status", folder)
    assert f"  its files are {runs} (version 3), as in its folder\n" in capsys.readouterr().out
    write_folder(tmp_path, {"a.sql": f"{TABLE} -- mended"})
    call("status", folder)
    others = load(folder, {}).fingerprint
    assert f"{runs} (version 3); those in its folder are others, {others}," in (
        capsys.readouterr().out
    )
    call("status", folder, "--json")
    (document,) = json.loads(capsys.readouterr().out)
    assert (document["fingerprint"], document["folder_fingerprint"]) == (runs, others)


@pytest.mark.parametrize(
    "other", [["--keep", "raw"], ["--sinks", "again"], ["--no-switch"], ["--expect-equal"]]
)
def test_the_way_back_takes_no_option_that_it_would_pass_over(
    other: list[str], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    with pytest.raises(click.UsageError, match="no other option"):
        call("replay", folder, "--back", *other)


@pytest.mark.parametrize("command", ["redrive", "backfill"])
def test_a_wrong_name_of_a_table_is_told_before_spark_is_started(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    with pytest.raises(PipelineError, match=r"did you mean raw\.x"):
        call(command, folder, "x")
    assert "starting Spark" not in capsys.readouterr().err


@pytest.mark.parametrize(("refused", "is_told"), [(1, True), (3, False)])
def test_a_redrive_that_stored_rows_says_when_the_tables_behind_have_them(
    refused: int,
    is_told: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redriven = Redriven(taken=3, refused=refused)
    monkeypatch.setattr("headrace.pipelines.commands.redrive", lambda *_, **__: redriven)
    call("redrive", tmp_path, "raw.x")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"3 rows taken out of quarantine, {refused} of them refused again"
    follows = "what reads raw.x follows with the next run, or now if the pipeline runs"
    assert lines[1:] == ([follows] if is_told else [])


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
    assert fitted_text([STATUS], [300.4], width) == text


@pytest.mark.parametrize("width", [120, 90, 80, 50])
def test_progress_says_that_flows_have_failed_while_others_go_on(width: int) -> None:
    flows = [msgspec.structs.replace(flow, state="failed") for flow in STATUS.flows * 2]
    status = msgspec.structs.replace(STATUS, flows=tuple(flows))
    assert fitted_text([status], [300.4], width).endswith("  2 flows failed, see status")


def test_progress_and_status_say_once_which_tables_are_stale(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flows = [msgspec.structs.replace(flow, stale="raw.x is old") for flow in STATUS.flows * 2]
    status = msgspec.structs.replace(STATUS, flows=tuple(flows), views=())
    assert progress_text(status, 300.4).endswith("  1 table stale, see status")
    print_status(status)
    assert capsys.readouterr().err.count("raw.x is old") == 1


def test_progress_and_status_tell_of_a_change_of_architecture(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = msgspec.structs.replace(STATUS, architecture="lambda", moving=("refined.n",))
    assert progress_text(status, 300.4).endswith("  1 view on the way to lambda, see status")
    print_status(status)
    assert "refined.n is on the way to lambda: readers see" in capsys.readouterr().out


def test_status_says_that_a_redrive_does_not_lower_what_was_quarantined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "since they began, and a redrive does not lower it; what is there now: headrace tables"
    print_status(msgspec.structs.replace(STATUS, lake="there"))
    assert f"{said} list --lake there\n" in capsys.readouterr().out
    flows = [msgspec.structs.replace(flow, quarantined=0) for flow in STATUS.flows]
    print_status(msgspec.structs.replace(STATUS, flows=tuple(flows)))
    assert said not in capsys.readouterr().out


@pytest.mark.parametrize(("is_limited", "since"), [(False, ""), (True, ", from that time on,")])
def test_a_backfill_that_finds_nothing_says_so(
    is_limited: bool, since: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing, some = Outcome(is_idle=True), Outcome(rows_in=3, rows_out=2, quarantined=1)
    print_backfilled({"f": nothing}, is_limited=is_limited)
    told = f"f: its topics have nothing older{since} than what it has read\n"
    assert capsys.readouterr().out == told
    print_backfilled({"f": nothing, "g": some}, is_limited=is_limited)
    first, *table = capsys.readouterr().out.splitlines()
    assert first + "\n" == told
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


def test_what_is_logged_while_the_line_moves_has_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Screen() as screen:
        screen.show([cast(Any, SimpleNamespace(status=STATUS))])
        logging.getLogger("headrace.pipelines").warning("the flow %s failed", "raw.x")
    shown, _, logged = terminal.getvalue().partition("headrace: ")
    assert "rows/s" in shown
    assert shown.endswith(" \r"), "the line was emptied before"
    assert logged == "the flow raw.x failed\n"


def test_zones_come_in_their_order_whichever_flow_is_first() -> None:
    flows = [FlowStatus(flow=zone, zone=zone, rows_in=2, rows_out=1) for zone in ("own", "raw")]
    status = PipelineStatus(pipeline="p", state="running", flows=tuple(flows))
    assert outcome_text(status) == "p: raw 2/1  own 2/1  in/out"


def test_the_line_tells_of_all_zones_also_where_there_is_little_room() -> None:
    zones = {"raw": 1200, "staging": 1190, "trusted": 1100, "refined": 12}
    flows = [
        FlowStatus(flow=zone, zone=zone, rows_in=1201, rows_out=rows, quarantined=7, lag=0)
        for zone, rows in zones.items()
    ]
    status = PipelineStatus(pipeline="access-logs", state="running", flows=tuple(flows))
    text = "access-logs: raw 1.2k>1.2k>1.1k>refined 12  quarantined 28  lag 0  47 rows/s"
    assert fitted_text([status], [47.0], 79) == text


def test_progress_of_several_pipelines_is_shortened_alike() -> None:
    assert fitted_text([STATUS] * 2, [300.4, 2e6], 40) == "shop 300 rows/s   shop 2.0M rows/s"


def test_nothing_is_left_out_where_there_is_no_terminal() -> None:
    assert whole_text([STATUS] * 3, [300.4] * 3).count("raw 1,200/1,190  refined 3/3") == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (9_949, "9.9k"), (34_200, "34k"), (5.6e6, "5.6M")],
)
def test_large_numbers_are_rounded(number: float, text: str) -> None:
    assert rounded(number) == text


def test_a_status_shows_flows_views_and_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(STATUS)
    output = capsys.readouterr()
    assert output.out.startswith("shop: running, continuous, as of 2026-03-01T12:00:00+00:00\n")
    assert "1,200" in output.out
    assert "refined.n" in output.out
    assert output.out.count("took ms") == 2
    assert output.err == "headrace: raw.x: the broker is away\n"


def test_a_run_that_ends_by_itself_has_no_metrics_to_ask_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["pipelines", "run", "shop", "--once", "--metrics", "9645"]) == 2
    assert "--metrics goes with --continuous" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["99999", "shop", "0.0.0.0:", "host:port"])
def test_a_metrics_port_that_is_none_is_refused(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipelines", "run", "shop", "--metrics", given]) == 1
    assert repr(given.rpartition(":")[2]) in capsys.readouterr().err


def test_a_pipeline_that_has_done_nothing_yet_says_so_instead_of_noughts() -> None:
    """The first batch waits for Spark to load what it needs, or for records."""
    flow = FlowStatus(flow="orders", zone="raw", state="running")
    begun = PipelineStatus(pipeline="shop", state="running", flows=(flow,))
    assert progress_text(begun, 0.0) == "shop: waiting for its first batch"
    counted = msgspec.structs.replace(flow, batches=1)
    done = msgspec.structs.replace(begun, flows=(counted, flow))
    assert progress_text(done, 0.0) == "shop: raw 0/0  in/out  0 rows/s"
