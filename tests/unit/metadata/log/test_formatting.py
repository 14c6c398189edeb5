"""Formatting: what Kafka's own tool would write, and safe to repeat."""

from pathlib import Path

import pytest

from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image_records import feature_records
from headrace.metadata.log.first_voters import parse_first_voters
from headrace.metadata.log.formatting import (
    AlreadyFormatted,
    DirectoryMissing,
    InconsistentDirectories,
    NewNode,
    NotFormatted,
    check_unformatted,
    format_directories,
)
from headrace.metadata.snapshots import FORMATTED, Snapshot, decode_snapshot
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.protocol.uuids import to_text
from headrace.runtime import files
from headrace.storage.checkpoints import DirectoryIdentity, decode_identity
from tests.builders.metadata_nodes import ENDPOINT, KAFKA_NODE, NOW_MS

NODE = NewNode(node_id=1, controller_endpoint=ENDPOINT)


def formatted(*directories: Path, node: NewNode = NODE) -> dict[str, DirectoryIdentity]:
    paths = [str(directory) for directory in directories]
    return format_directories(paths, paths[0], node, NOW_MS)


def voters_of(snapshot: Snapshot) -> list[VotersRecordVoter]:
    """The voters in the control records of a snapshot."""
    _, voters = snapshot.control
    assert isinstance(voters, VotersRecord)
    return voters.voters


def test_the_first_directory_names_the_voter_and_the_levels(tmp_path: Path) -> None:
    identity = formatted(tmp_path)[str(tmp_path)]
    snapshot = decode_snapshot(
        (tmp_path / "__cluster_metadata-0" / FORMATTED.file_name).read_bytes()
    )
    assert snapshot.records == []
    assert snapshot.control[0] == KRaftVersionRecord(0, 1)
    (voter,) = voters_of(snapshot)
    assert (voter.voter_id, voter.voter_directory_id) == (1, identity.directory_id)
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [
        ("CONTROLLER", "localhost", 9093)
    ]
    bootstrap = decode_snapshot((tmp_path / "bootstrap.checkpoint").read_bytes())
    assert bootstrap.records == feature_records(DEFAULT_LEVELS)


def test_our_voters_snapshot_is_kafkas_but_for_its_times(tmp_path: Path) -> None:
    name = f"__cluster_metadata-0/{FORMATTED.file_name}"
    kafkas = (KAFKA_NODE / name).read_bytes()
    identity = decode_identity((KAFKA_NODE / "meta.properties").read_bytes())
    formatted(tmp_path)
    ours = decode_snapshot((tmp_path / name).read_bytes())
    theirs = decode_snapshot(kafkas)
    (our_voter,), (their_voter,) = voters_of(ours), voters_of(theirs)
    assert their_voter.voter_directory_id == identity.directory_id
    assert our_voter.kraft_version_feature == their_voter.kraft_version_feature
    assert len((tmp_path / name).read_bytes()) == len(kafkas)


def test_formatting_again_changes_nothing(tmp_path: Path) -> None:
    first = formatted(tmp_path)
    before = (tmp_path / "meta.properties").read_bytes()
    assert formatted(tmp_path) == first
    assert (tmp_path / "meta.properties").read_bytes() == before


def test_all_directories_of_a_node_belong_together(tmp_path: Path) -> None:
    identities = formatted(tmp_path / "a", tmp_path / "b")
    first, second = identities.values()
    assert first.cluster_id == second.cluster_id
    assert first.directory_id != second.directory_id
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()


def test_a_directory_added_later_joins_the_cluster(tmp_path: Path) -> None:
    first = formatted(tmp_path / "a")[str(tmp_path / "a")]
    both = formatted(tmp_path / "a", tmp_path / "b")
    assert both[str(tmp_path / "a")] == first
    assert both[str(tmp_path / "b")].cluster_id == first.cluster_id


def test_a_directory_is_added_if_all_known_ones_exist(tmp_path: Path) -> None:
    """LOG-19"""
    first = formatted(tmp_path / "a")[str(tmp_path / "a")]
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    known = {first.directory_id: 3}
    both = format_directories(paths, paths[0], NODE, NOW_MS, known=lambda: known)
    assert set(both) == set(paths)


def test_a_bare_mount_point_of_a_missing_disk_is_not_formatted(tmp_path: Path) -> None:
    """LOG-19: the error names it, what is missing, and what to do."""
    both = formatted(tmp_path / "a", tmp_path / "b")
    known = {identity.directory_id: 3 for identity in both.values()}
    (tmp_path / "b").rename(tmp_path / "not mounted")
    (tmp_path / "b").mkdir()
    with pytest.raises(DirectoryMissing) as refused:
        format_directories(list(both), str(tmp_path / "a"), NODE, NOW_MS, known=lambda: known)
    assert list((tmp_path / "b").iterdir()) == []
    told = str(refused.value)
    missing = to_text(both[str(tmp_path / "b")].directory_id)
    assert told.startswith(f"{tmp_path / 'b'} is not formatted")
    assert f"{missing} with 3 partitions" in told
    assert "headrace.format.new.directories=true" in told


def test_known_directories_are_not_read_if_none_is_to_be_formatted(tmp_path: Path) -> None:
    """Reading the metadata takes time, which a usual start does not have."""

    def known() -> dict[bytes, int]:
        raise AssertionError("asked")

    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    first = format_directories(paths, paths[0], NODE, NOW_MS, known=known)
    assert format_directories(paths, paths[0], NODE, NOW_MS, known=known) == first


def test_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    formatted(tmp_path)
    with pytest.raises(InconsistentDirectories, match="node 1"):
        formatted(tmp_path, node=NewNode(node_id=2, controller_endpoint=ENDPOINT))
    other = NewNode(node_id=1, controller_endpoint=ENDPOINT, cluster_id="x" * 22)
    with pytest.raises(InconsistentDirectories, match="cluster"):
        formatted(tmp_path, node=other)


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    formatted(tmp_path / "a")
    formatted(tmp_path / "b")
    with pytest.raises(InconsistentDirectories, match="different clusters"):
        formatted(tmp_path / "a", tmp_path / "b")


def test_data_without_its_metadata_log_is_not_formatted_over(tmp_path: Path) -> None:
    formatted(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InconsistentDirectories, match="holds no metadata log"):
        formatted(tmp_path / "new", tmp_path / "b")


def test_a_crash_in_the_middle_leaves_a_directory_to_be_formatted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = files.replace

    def die_at_the_identity(source: str, target: str) -> None:
        if target.endswith("meta.properties"):
            raise OSError("killed")
        replace(source, target)

    monkeypatch.setattr(files, "replace", die_at_the_identity)
    with pytest.raises(OSError, match="killed"):
        formatted(tmp_path)
    monkeypatch.undo()
    identity = formatted(tmp_path)[str(tmp_path)]
    snapshot = decode_snapshot(
        (tmp_path / "__cluster_metadata-0" / FORMATTED.file_name).read_bytes()
    )
    assert voters_of(snapshot)[0].voter_directory_id == identity.directory_id


def test_further_records_wait_for_the_first_leader(tmp_path: Path) -> None:
    credential = UserScramCredentialRecord("ada", 1)
    node = NewNode(node_id=1, controller_endpoint=ENDPOINT, bootstrap=[credential])
    formatted(tmp_path, node=node)
    bootstrap = decode_snapshot((tmp_path / "bootstrap.checkpoint").read_bytes())
    assert bootstrap.records[-1] == credential


@pytest.mark.parametrize("levels", [{}, {"metadata.version": 99}, {"metadata.version": 25, "x": 1}])
def test_unsupported_levels_are_rejected(tmp_path: Path, levels: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        formatted(tmp_path, node=NewNode(node_id=1, controller_endpoint=ENDPOINT, levels=levels))
    assert not (tmp_path / "meta.properties").exists()


THREE = ",".join(f"{one}@127.0.0.1:{19000 + one}:Node{one}AAAAAAAAAAAAAAAAA" for one in (3, 1, 2))
CLUSTER = "AnchorClusterAAAAAAAAA"


def voters_in(directory: Path) -> list[tuple[int, str, str, int]]:
    path = directory / "__cluster_metadata-0" / FORMATTED.file_name
    voters = voters_of(decode_snapshot(path.read_bytes()))
    return [
        (
            one.voter_id,
            to_text(one.voter_directory_id),
            one.endpoints[0].host,
            one.endpoints[0].port,
        )
        for one in voters
    ]


def node_of_three(node_id: int) -> NewNode:
    voters = parse_first_voters(THREE, "CONTROLLER")
    return NewNode(node_id=node_id, voters=voters, cluster_id=CLUSTER)


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_every_first_voter_has_the_addresses_of_all(tmp_path: Path, node_id: int) -> None:
    """REP-14."""
    identity = formatted(tmp_path, node=node_of_three(node_id))[str(tmp_path)]
    assert to_text(identity.directory_id) == f"Node{node_id}AAAAAAAAAAAAAAAAA"
    assert identity.cluster_id == CLUSTER
    assert voters_in(tmp_path) == [
        (one, f"Node{one}AAAAAAAAAAAAAAAAA", "127.0.0.1", 19000 + one) for one in (1, 2, 3)
    ]


def test_a_node_beside_the_first_voters_has_their_addresses_too(tmp_path: Path) -> None:
    identity = formatted(tmp_path, node=node_of_three(4))[str(tmp_path)]
    assert not to_text(identity.directory_id).startswith("Node")
    assert len(voters_in(tmp_path)) == 3


def test_a_broker_or_static_controller_has_no_voters_on_disk(tmp_path: Path) -> None:
    formatted(tmp_path, node=NewNode(node_id=4, cluster_id=CLUSTER))
    assert not (tmp_path / "__cluster_metadata-0").exists()
    assert (tmp_path / "bootstrap.checkpoint").exists()


def test_further_directories_of_a_voter_have_ids_of_their_own(tmp_path: Path) -> None:
    identities = formatted(tmp_path / "a", tmp_path / "b", node=node_of_three(1))
    first, second = (to_text(one.directory_id) for one in identities.values())
    assert first == "Node1AAAAAAAAAAAAAAAAA" != second


def test_a_formatted_directory_is_refused_on_request(tmp_path: Path) -> None:
    check_unformatted([str(tmp_path / "a")])
    formatted(tmp_path / "a")
    with pytest.raises(AlreadyFormatted, match="--ignore-formatted"):
        check_unformatted([str(tmp_path / "b"), str(tmp_path / "a")])


def test_a_node_of_a_cluster_does_not_make_up_a_cluster_of_its_own(tmp_path: Path) -> None:
    broker = NewNode(node_id=4)
    with pytest.raises(NotFormatted, match="run headrace format"):
        formatted(tmp_path / "a", node=broker)
    assert not (tmp_path / "a").exists()
    formatted(tmp_path / "a", node=NewNode(node_id=4, cluster_id=CLUSTER))
    both = formatted(tmp_path / "a", tmp_path / "b", node=broker)
    assert {identity.cluster_id for identity in both.values()} == {CLUSTER}
