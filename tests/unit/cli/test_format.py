"""`headrace format`: kafka-storage's choices, refusals and files."""

from pathlib import Path

import pytest

from headrace.cli.format import Quorum, new_node, problems_of, settings_of
from headrace.cli.main import main
from headrace.errors import InvalidConfig
from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image import Endpoint
from headrace.metadata.log.release_levels import CLUSTER_LEVELS
from headrace.metadata.records import decode_batches
from headrace.metadata.snapshots import FORMATTED
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.protocol.uuids import from_text
from headrace.settings.broker import BrokerSettings

CLUSTER = "AnchorClusterAAAAAAAAA"
VOTERS = "1@127.0.0.1:19193:Node1AAAAAAAAAAAAAAAAA,2@127.0.0.1:19194:Node2AAAAAAAAAAAAAAAAA"
COMBINED = (
    "node.id=1",
    "listeners=PLAINTEXT://127.0.0.1:19093,CONTROLLER://127.0.0.1:19193",
    "controller.quorum.bootstrap.servers=127.0.0.1:19193,127.0.0.1:19194",
)
STATIC = (*COMBINED[:2], "controller.quorum.voters=1@127.0.0.1:19193,2@127.0.0.1:19194")
BROKER = ("node.id=4", "process.roles=broker", COMBINED[2])


def settings(*assignments: str) -> BrokerSettings:
    return settings_of(None, assignments, data="unused")


def options(assignments: tuple[str, ...]) -> list[str]:
    return [f"--set={assignment}" for assignment in assignments]


def snapshot_in(directory: Path) -> Path:
    return directory / "__cluster_metadata-0" / FORMATTED.file_name


def test_a_first_voter_is_formatted_with_all_of_them() -> None:
    node = new_node(settings(*COMBINED), Quorum(False, VOTERS), CLUSTER, None, {})
    assert [(voter.node_id, voter.endpoint.port) for voter in node.voters] == [
        (1, 19193),
        (2, 19194),
    ]
    assert (node.controller_endpoint, node.levels) == (None, dict(CLUSTER_LEVELS))


def test_a_standalone_controller_is_its_own_first_voter_with_a_new_cluster() -> None:
    node = new_node(settings(*COMBINED), Quorum(standalone=True), None, None, {})
    assert node.controller_endpoint == Endpoint("CONTROLLER", "127.0.0.1", 19193, 0)
    assert (node.voters, node.cluster_id) == ((), None)


def test_a_standalone_controller_of_every_interface_is_at_localhost_as_in_kafka() -> None:
    listening = "listeners=PLAINTEXT://:19093,CONTROLLER://:19193"
    node = new_node(settings(*COMBINED, listening), Quorum(standalone=True), None, None, {})
    assert node.controller_endpoint == Endpoint("CONTROLLER", "localhost", 19193, 0)


def test_a_single_node_needs_no_options_and_keeps_its_levels() -> None:
    node = new_node(settings(), Quorum(), None, None, {})
    assert node.controller_endpoint is not None
    assert node.levels == dict(DEFAULT_LEVELS)


@pytest.mark.parametrize(
    ("assignments", "quorum"),
    [(BROKER, Quorum()), (STATIC, Quorum()), (COMBINED, Quorum(no_initial_controllers=True))],
)
def test_brokers_static_and_joining_controllers_begin_without_voters(
    assignments: tuple[str, ...], quorum: Quorum
) -> None:
    node = new_node(settings(*assignments), quorum, CLUSTER, None, {})
    assert (node.controller_endpoint, node.voters) == (None, ())


def test_a_release_and_features_decide_the_levels() -> None:
    node = new_node(settings(*BROKER), Quorum(), CLUSTER, "4.1", {"share.version": 1})
    assert (node.levels["metadata.version"], node.levels["share.version"]) == (27, 1)


@pytest.mark.parametrize(
    ("assignments", "quorum", "cluster_id", "message"),
    [
        (COMBINED, Quorum(), CLUSTER, "--standalone for the first controller"),
        (COMBINED, Quorum(True, VOTERS), CLUSTER, "exclude each other"),
        (COMBINED, Quorum(False, VOTERS), None, "give --cluster-id"),
        (STATIC, Quorum(standalone=True), CLUSTER, "needs no --standalone"),
        (STATIC, Quorum(False, VOTERS), CLUSTER, "needs no --initial-controllers"),
        (BROKER, Quorum(standalone=True), CLUSTER, "--standalone is for controllers"),
        (BROKER, Quorum(), None, "give --cluster-id"),
        (
            (*COMBINED, "listeners=PLAINTEXT://:1,CONTROLLER://:0"),
            Quorum(standalone=True),
            None,
            "needs a port",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    assignments: tuple[str, ...], quorum: Quorum, cluster_id: str | None, message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        new_node(settings(*assignments), quorum, cluster_id, None, {})
    assert message in str(caught.value)


def test_the_command_formats_all_directories_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*options(COMBINED), f"--set=log.dirs={tmp_path}/a,{tmp_path}/b"]
    arguments = ["format", "--cluster-id", CLUSTER, "--initial-controllers", VOTERS, *given]
    assert main(arguments) == 0
    assert f"formatted {tmp_path}/a for node 1 of cluster {CLUSTER}" in capsys.readouterr().out
    assert snapshot_in(tmp_path / "a").exists()
    assert main(arguments) == 1
    assert "--ignore-formatted" in capsys.readouterr().err
    assert main([*arguments, "--ignore-formatted"]) == 0
    assert "already formatted" in capsys.readouterr().out


def test_a_wrong_cluster_is_refused_even_if_formatted_directories_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = ["format", "--data", str(tmp_path), *options(BROKER), "--cluster-id"]
    assert main([*broker, CLUSTER]) == 0
    assert main([*broker, "OtherClusterAAAAAAAAAA", "--ignore-formatted"]) == 1
    assert "belong to cluster" in capsys.readouterr().err


def test_info_reports_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker = ["--data", str(tmp_path), *options(BROKER)]
    assert main(["format", "info", *broker]) == 1
    assert f"{tmp_path} is not formatted" in capsys.readouterr().err
    assert main(["format", "--cluster-id", CLUSTER, *broker]) == 0
    assert main(["format", "info", *broker]) == 0
    assert CLUSTER in capsys.readouterr().out
    assert main(["format", "info", "--data", str(tmp_path), *options(COMBINED)]) == 1
    assert "belongs to node 4, and node.id is 1" in capsys.readouterr().err


def test_directories_of_two_clusters_are_a_problem() -> None:
    from headrace.cli.format import DirectoryState

    states = [
        DirectoryState(directory=one, state="formatted", cluster_id=one, node_id=1) for one in "ab"
    ]
    assert problems_of(states, 1) == ["the directories belong to clusters a, b"]


def test_a_random_uuid_is_one_of_kafkas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "random-uuid"]) == 0
    assert len(from_text(capsys.readouterr().out.strip())) == 16


@pytest.mark.parametrize("feature", ["share.version", "share.version=many"])
def test_a_malformed_feature_is_refused(feature: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "--feature", feature]) == 2
    assert "FEATURE=LEVEL" in capsys.readouterr().err


def test_first_users_are_written_with_the_first_records(tmp_path: Path) -> None:
    users = [f"SCRAM-SHA-{bits}=[name=admin,password=secret]" for bits in (256, 512)]
    arguments = [word for user in users for word in ("--add-scram", user)]
    assert main(["format", "--data", str(tmp_path), *arguments]) == 0
    bootstrap = (tmp_path / "bootstrap.checkpoint").read_bytes()
    records = [record for batch in decode_batches(bootstrap) for record in batch.records]
    found = [one for one in records if isinstance(one, UserScramCredentialRecord)]
    assert [(one.name, one.mechanism) for one in found] == [("admin", 1), ("admin", 2)]
    assert b"secret" not in bootstrap


def test_a_malformed_first_user_leaves_the_directory_unformatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["format", "--data", str(tmp_path), "--add-scram", "SCRAM-SHA-256=[name=admin]"]
    assert main(arguments) == 1
    assert "one of password and saltedpassword" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_old_release_has_no_first_users(capsys: pytest.CaptureFixture[str]) -> None:
    user = "SCRAM-SHA-256=[name=admin,password=secret]"
    assert main(["format", "--data", "unused", "--release-version", "3.4", "-S", user]) == 1
    assert "3.5 or later" in capsys.readouterr().err
