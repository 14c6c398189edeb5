"""Formatting: what Kafka's own tool would write, and safe to repeat."""

from pathlib import Path

import pytest

from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image_records import feature_records
from headrace.metadata.snapshots import FORMATTED, decode_snapshot
from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord
from headrace.protocol.uuids import to_text
from headrace.raft.formatting import (
    DirectoryMissing,
    InconsistentDirectories,
    NewNode,
    format_directories,
)
from headrace.runtime import files
from headrace.storage.checkpoints import DirectoryIdentity, decode_identity
from tests.metadata_nodes import ENDPOINT, KAFKA_NODE, NOW_MS

NODE = NewNode(node_id=1, controller_endpoint=ENDPOINT)


def formatted(*directories: Path, node: NewNode = NODE) -> dict[str, DirectoryIdentity]:
    paths = [str(directory) for directory in directories]
    return format_directories(paths, paths[0], node, NOW_MS)


def test_the_first_directory_names_the_voter_and_the_levels(tmp_path: Path) -> None:
    identity = formatted(tmp_path)[str(tmp_path)]
    snapshot = decode_snapshot(
        (tmp_path / "__cluster_metadata-0" / FORMATTED.file_name).read_bytes()
    )
    assert (snapshot.kraft_version, snapshot.records) == (1, [])
    assert snapshot.voters is not None
    (voter,) = snapshot.voters.voters
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
    assert theirs.voters is not None
    assert theirs.voters.voters[0].voter_directory_id == identity.directory_id
    assert ours.voters is not None
    assert ours.voters.voters[0].kraft_version_feature == (
        theirs.voters.voters[0].kraft_version_feature
    )
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


def test_a_directory_is_added_while_all_known_ones_are_there(tmp_path: Path) -> None:
    """LOG-19"""
    first = formatted(tmp_path / "a")[str(tmp_path / "a")]
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    known = {first.directory_id: 3}
    both = format_directories(paths, paths[0], NODE, NOW_MS, known=lambda: known)
    assert set(both) == set(paths)


def test_a_bare_mount_point_is_not_formatted_in_the_place_of_a_disk(tmp_path: Path) -> None:
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


def test_nobody_is_asked_what_is_known_when_nothing_is_to_be_formatted(tmp_path: Path) -> None:
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
    assert snapshot.voters is not None
    assert snapshot.voters.voters[0].voter_directory_id == identity.directory_id


def test_further_records_wait_for_the_first_leader(tmp_path: Path) -> None:
    credential = UserScramCredentialRecord("ada", 1)
    node = NewNode(node_id=1, controller_endpoint=ENDPOINT, bootstrap=[credential])
    formatted(tmp_path, node=node)
    bootstrap = decode_snapshot((tmp_path / "bootstrap.checkpoint").read_bytes())
    assert bootstrap.records[-1] == credential


@pytest.mark.parametrize("levels", [{}, {"metadata.version": 99}, {"metadata.version": 25, "x": 1}])
def test_levels_that_nobody_has_are_refused(tmp_path: Path, levels: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        formatted(tmp_path, node=NewNode(node_id=1, controller_endpoint=ENDPOINT, levels=levels))
    assert not (tmp_path / "meta.properties").exists()
