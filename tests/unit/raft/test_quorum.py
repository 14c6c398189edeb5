"""One replica of a quorum: its answers, its transitions, and what it stores before it sends."""

from random import Random
from typing import Any

import pytest

from headrace import errors
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas import (
    add_raft_voter,
    api_versions,
    describe_quorum,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    vote,
)
from headrace.protocol.schemas.end_quorum_epoch import EndQuorumEpochRequest
from headrace.raft import messages
from headrace.raft.effects import LocalReplica, Now, Output, Timeouts
from headrace.raft.leading import Leader
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.messages import Leadership
from headrace.raft.quorum import Quorum
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replica import QuorumFailure
from headrace.raft.replicas import DYNAMIC_VOTERS, Node, ReplicaKey, Voter, VoterHistory, VoterSet
from headrace.raft.states import Candidate, Follower, Prospective, Resigned, Unattached
from tests.builders.quorums import CLUSTER, LISTENER, endpoint
from tests.builders.raft_logs import Batch, Disk, ModelLog

WALL_MS = 1_700_000_000_000


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def voters_of(*ids: int) -> VoterSet:
    return VoterSet.of(Voter(key_of(id_), (endpoint(id_),)) for id_ in ids)


def batch_of(offset: int, epoch: int, value: bytes = b"x") -> bytes:
    return bytes(build_batch([Record(offset, 0, None, value)], leader_epoch=epoch))


class Driver:
    """Replica 1, driven by hand."""

    def __init__(
        self,
        voters: tuple[int, ...] = (1, 2, 3),
        *,
        kraft_version: int = DYNAMIC_VOTERS,
        epochs: tuple[int, ...] = (),
        stored: QuorumState | None = None,
        **local: Any,
    ) -> None:
        """`epochs` are those of the batches that the log has already."""
        self.ms = 0
        self.disk = Disk()
        for offset, epoch in enumerate(epochs):
            batch = Batch(offset, offset + 1, epoch, batch_of(offset, epoch))
            self.disk.written.append(batch)
        self.disk.durable = list(self.disk.written)
        replica = LocalReplica(
            key=key_of(1),
            cluster_id=CLUSTER,
            listener=LISTENER,
            endpoints=(endpoint(1),),
            bootstrap=(Node(-2, "host2", 9093),),
            **local,
        )
        self.quorum = Quorum(
            replica,
            ModelLog(self.disk),
            VoterHistory(voters_of(*voters), kraft_version),
            stored or QuorumState(),
            Timeouts(),
            Random(1),
            self.now,
        )

    @property
    def now(self) -> Now:
        return Now(self.ms, WALL_MS + self.ms)

    def pass_time(self, ms: int) -> Output:
        self.ms += ms
        self.quorum.tick(self.now)
        return self.quorum.take()

    def receive(self, request: Any) -> Any:
        """Return the reply; None if the request waits."""
        self.quorum.receive(7, request, self.now)
        self.output = self.quorum.take()
        found = [reply.message for reply in self.output.replies if reply.token == 7]
        return found[0] if found else None

    def answer(self, output: Output, kind: type, answer: Any) -> Output:
        """Answer all requests of a kind."""
        for request in output.requests:
            if isinstance(request.message, kind):
                self.quorum.answered(request.token, answer, self.now)
        return self.quorum.take()

    def sync(self, output: Output) -> Output:
        assert output.sync is not None
        self.disk.sync(output.sync.end_offset)
        self.quorum.synced(output.sync, self.now)
        return self.quorum.take()

    def elect(self) -> Output:
        """Make the replica a leader whose first record is synced here."""
        asked = self.pass_time(2000)
        epoch = self.quorum.epoch
        granted = messages.vote_answer(0, Leadership(epoch), granted=True)
        asked = self.answer(asked, vote.VoteRequest, granted)
        granted = messages.vote_answer(0, Leadership(epoch + 1), granted=True)
        return self.sync(self.answer(asked, vote.VoteRequest, granted))

    def follow(self, leader: int = 2, epoch: int = 5) -> Output:
        """Make the replica a follower."""
        at = Leadership(epoch, leader)
        self.receive(messages.begin_epoch_request(CLUSTER, key_of(1), at, (endpoint(leader),)))
        return self.output

    def fetch(self, replica: int, offset: int, last_epoch: int) -> Any:
        request = messages.fetch_request(
            CLUSTER,
            key_of(replica),
            self.quorum.epoch,
            OffsetAndEpoch(offset, last_epoch),
            -1,
            1000,
        )
        reply = self.receive(request)
        return reply and reply.responses[0].partitions[0]

    def vote(
        self, candidate: int, epoch: int, last: OffsetAndEpoch, *, pre_vote: bool = False
    ) -> Any:
        request = messages.vote_request(
            CLUSTER, key_of(candidate), key_of(1), epoch, last, pre_vote=pre_vote
        )
        return self.receive(request).topics[0].partitions[0]


def requests_of(output: Output, kind: type) -> list[Any]:
    return [one.message for one in output.requests if isinstance(one.message, kind)]


# --- elections --------------------------------------------------------------------------------


def test_a_sole_voter_leads_at_once_and_commits_what_is_synced() -> None:
    driver = Driver((1,))
    output = driver.quorum.take()
    assert output.leadership == Leadership(1, 1, Node(1, "host1", 9093))
    assert output.state is not None
    assert (output.state.leader_id, output.state.leader_epoch) == (1, 1)
    assert driver.quorum.high_watermark is None
    assert driver.sync(output).high_watermark == driver.quorum.log.end_offset


def test_a_voter_without_a_leader_asks_before_it_begins_an_epoch() -> None:
    driver = Driver()
    output = driver.pass_time(2000)
    asked = requests_of(output, vote.VoteRequest)
    assert [one.topics[0].partitions[0].pre_vote for one in asked] == [True, True]
    assert driver.quorum.epoch == 0
    assert output.state is None


def test_a_pre_vote_of_a_majority_begins_an_epoch_with_a_stored_vote() -> None:
    driver = Driver()
    output = driver.pass_time(2000)
    granted = messages.vote_answer(0, Leadership(0), granted=True)
    output = driver.answer(output, vote.VoteRequest, granted)
    assert isinstance(driver.quorum.state, Candidate)
    assert output.state is not None
    assert (output.state.leader_epoch, output.state.voted_id) == (1, 1)


def test_a_lost_pre_vote_ends_without_a_new_epoch() -> None:
    driver = Driver()
    output = driver.pass_time(2000)
    rejected = messages.vote_answer(0, Leadership(0), granted=False)
    driver.answer(output, vote.VoteRequest, rejected)
    assert isinstance(driver.quorum.state, Unattached)
    assert driver.quorum.epoch == 0


def test_an_observer_starts_no_election() -> None:
    driver = Driver((2, 3))
    output = driver.pass_time(10_000)
    assert isinstance(driver.quorum.state, Unattached)
    assert not requests_of(output, vote.VoteRequest)
    assert requests_of(output, fetch.FetchRequest)


def test_a_vote_is_stored_before_it_is_sent() -> None:
    driver = Driver()
    answer = driver.vote(2, 3, OffsetAndEpoch(0, 0))
    assert answer.vote_granted
    assert driver.output.state is not None
    assert (driver.output.state.leader_epoch, driver.output.state.voted_id) == (3, 2)


@pytest.mark.parametrize(("candidate", "granted"), [(2, True), (3, False)])
def test_an_epoch_has_one_vote_also_after_a_restart(candidate: int, granted: bool) -> None:
    stored = QuorumState(leader_epoch=3, voted_id=2, voted_directory_id=key_of(2).directory_id)
    driver = Driver(stored=stored)
    assert driver.vote(candidate, 3, OffsetAndEpoch(0, 0)).vote_granted is granted


def test_no_vote_is_granted_in_an_epoch_with_a_known_leader() -> None:
    driver = Driver(stored=QuorumState(leader_epoch=3, leader_id=2))
    assert isinstance(driver.quorum.state, Follower)
    assert not driver.vote(3, 3, OffsetAndEpoch(9, 2)).vote_granted


def test_no_vote_is_granted_in_an_epoch_whose_leader_has_no_address() -> None:
    driver = Driver(stored=QuorumState(leader_epoch=3, leader_id=9))
    assert isinstance(driver.quorum.state, Unattached)
    assert not driver.vote(3, 3, OffsetAndEpoch(9, 2)).vote_granted


@pytest.mark.parametrize(
    ("last", "granted"),
    [
        (OffsetAndEpoch(1, 2), False),
        (OffsetAndEpoch(9, 1), False),
        (OffsetAndEpoch(2, 2), True),
        (OffsetAndEpoch(1, 3), True),
    ],
)
def test_a_vote_needs_a_log_that_is_up_to_date(last: OffsetAndEpoch, granted: bool) -> None:
    driver = Driver(epochs=(1, 2))
    assert driver.vote(2, 5, last).vote_granted is granted


def test_a_follower_whose_leader_answers_refuses_pre_votes() -> None:
    driver = Driver()
    output = driver.follow()
    assert driver.vote(3, 5, OffsetAndEpoch(9, 4), pre_vote=True).vote_granted
    records = fetch.PartitionData(high_watermark=-1, records=b"")
    answer = messages.fetch_answer(records, Leadership(5, 2))
    driver.answer(output, fetch.FetchRequest, answer)
    assert not driver.vote(3, 5, OffsetAndEpoch(9, 4), pre_vote=True).vote_granted


def test_a_follower_whose_leader_is_silent_starts_an_election() -> None:
    driver = Driver()
    driver.follow()
    driver.pass_time(2000)
    assert isinstance(driver.quorum.state, Prospective)
    assert driver.quorum.leadership.leader_id == 2


def test_a_follower_whose_leader_refuses_connections_starts_an_election_at_once() -> None:
    driver = Driver()
    driver.follow()
    driver.quorum.leader_refuses_connections(driver.now)
    assert isinstance(driver.quorum.state, Prospective)


def test_a_restarted_leader_has_resigned() -> None:
    driver = Driver(stored=QuorumState(leader_epoch=4, leader_id=1))
    assert isinstance(driver.quorum.state, Resigned)
    driver.pass_time(2000)
    assert driver.quorum.epoch == 5


def test_a_leader_without_a_majority_resigns() -> None:
    driver = Driver()
    driver.elect()
    output = driver.pass_time(3000)
    assert isinstance(driver.quorum.state, Resigned)
    assert output.leadership == Leadership(1)


def test_a_leader_that_one_of_two_followers_reaches_stays() -> None:
    driver = Driver()
    driver.elect()
    driver.pass_time(2000)
    driver.fetch(2, 0, 0)
    driver.pass_time(1500)
    assert driver.quorum.is_leader


@pytest.mark.parametrize(("successors", "wait_ms"), [((1, 2), 0), ((2, 1), 500), ((2, 3), 1000)])
def test_successors_of_a_leader_take_turns(successors: tuple[int, ...], wait_ms: int) -> None:
    driver = Driver()
    driver.follow(leader=3)
    request = messages.end_epoch_request(
        CLUSTER, Leadership(5, 3), [key_of(one) for one in successors], ()
    )
    driver.receive(request)
    assert driver.quorum.state.deadline_ms == driver.ms + wait_ms


def test_a_newer_epoch_ends_a_leadership_and_refuses_waiting_fetches() -> None:
    driver = Driver()
    driver.elect()
    end = driver.quorum.log.end_offset
    driver.fetch(2, end, 1)
    waiting = messages.fetch_request(CLUSTER, key_of(3), 1, OffsetAndEpoch(end, 1), end, 1000)
    assert driver.receive(waiting) is None
    driver.quorum.receive(8, _begin(2, 9), driver.now)
    replies = {one.token: one.message for one in driver.quorum.take().replies}
    assert isinstance(driver.quorum.state, Follower)
    refused = replies[7]
    assert isinstance(refused, fetch.FetchResponse)
    partition = refused.responses[0].partitions[0]
    assert partition.error_code == errors.NotLeaderOrFollower.code
    assert partition.current_leader == fetch.LeaderIdAndEpoch(2, 9)


def _begin(leader: int, epoch: int) -> Any:
    return messages.begin_epoch_request(
        CLUSTER, key_of(1), Leadership(epoch, leader), (endpoint(leader),)
    )


# --- commits ----------------------------------------------------------------------------------


def test_a_leader_counts_itself_only_when_its_disk_has_the_records() -> None:
    driver = Driver((1, 2))
    asked = driver.pass_time(2000)
    granted = messages.vote_answer(0, Leadership(0), granted=True)
    asked = driver.answer(asked, vote.VoteRequest, granted)
    granted = messages.vote_answer(0, Leadership(1), granted=True)
    unsynced = driver.answer(asked, vote.VoteRequest, granted)
    end = driver.quorum.log.end_offset
    driver.fetch(2, end, 1)
    assert driver.quorum.high_watermark is None
    assert driver.sync(unsynced).high_watermark == end


def test_records_of_older_epochs_are_committed_only_with_one_of_the_leader() -> None:
    driver = Driver(epochs=(0, 0, 0))
    driver.elect()
    driver.fetch(2, 3, 0)
    assert driver.quorum.high_watermark is None
    driver.fetch(2, driver.quorum.log.end_offset, 1)
    assert driver.quorum.high_watermark == driver.quorum.log.end_offset


def test_a_follower_fetches_on_only_when_its_disk_has_the_records() -> None:
    driver = Driver()
    output = driver.follow()
    partition = fetch.PartitionData(high_watermark=0, records=batch_of(0, 5))
    answer = messages.fetch_answer(partition, Leadership(5, 2))
    output = driver.answer(output, fetch.FetchRequest, answer)
    assert not requests_of(output, fetch.FetchRequest)
    (asked,) = requests_of(driver.sync(output), fetch.FetchRequest)
    assert asked.topics[0].partitions[0].fetch_offset == 1


@pytest.mark.parametrize(
    "records",
    [batch_of(1, 5), batch_of(0, 6), batch_of(0, 5)[:-1] + b"z"],
    ids=["a gap", "a newer epoch", "a wrong checksum"],
)
def test_records_that_cannot_follow_are_rejected(records: bytes) -> None:
    driver = Driver()
    output = driver.follow()
    partition = fetch.PartitionData(high_watermark=1, records=records)
    driver.answer(output, fetch.FetchRequest, messages.fetch_answer(partition, Leadership(5, 2)))
    assert driver.quorum.log.end_offset == 0
    assert driver.quorum.high_watermark is None


def test_a_last_batch_that_was_cut_off_is_left_out() -> None:
    driver = Driver()
    output = driver.follow()
    records = batch_of(0, 5) + batch_of(1, 5)[:-3]
    partition = fetch.PartitionData(high_watermark=0, records=records)
    driver.answer(output, fetch.FetchRequest, messages.fetch_answer(partition, Leadership(5, 2)))
    assert driver.quorum.log.end_offset == 1


def test_a_follower_truncates_to_the_last_common_epoch() -> None:
    driver = Driver(epochs=(1, 1, 2, 2))
    output = driver.follow()
    partition = fetch.PartitionData(diverging_epoch=fetch.EpochEndOffset(1, 9))
    driver.answer(output, fetch.FetchRequest, messages.fetch_answer(partition, Leadership(5, 2)))
    assert driver.quorum.log.end_offset == 2


def test_committed_records_are_never_truncated() -> None:
    driver = Driver(epochs=(1, 1, 2, 2))
    driver.quorum.high_watermark = 3
    output = driver.follow()
    partition = fetch.PartitionData(diverging_epoch=fetch.EpochEndOffset(1, 9))
    answer = messages.fetch_answer(partition, Leadership(5, 2))
    with pytest.raises(QuorumFailure, match="belong to one cluster"):
        driver.answer(output, fetch.FetchRequest, answer)


def test_records_of_a_snapshot_are_never_truncated() -> None:
    """A replica that has just started has no high watermark yet."""
    driver = Driver(epochs=(1, 1, 2, 2))
    ModelLog(driver.disk).take_snapshot(3, driver.quorum.history, [])
    output = driver.follow()
    partition = fetch.PartitionData(diverging_epoch=fetch.EpochEndOffset(1, 2))
    answer = messages.fetch_answer(partition, Leadership(5, 2))
    with pytest.raises(QuorumFailure, match="up to 3 are committed"):
        driver.answer(output, fetch.FetchRequest, answer)


def test_a_sync_before_a_truncation_acknowledges_nothing_after_it() -> None:
    driver = Driver(epochs=(1,))
    output = driver.follow()
    partition = fetch.PartitionData(high_watermark=0, records=batch_of(1, 2))
    answer = messages.fetch_answer(partition, Leadership(5, 2))
    written = driver.answer(output, fetch.FetchRequest, answer)
    driver.quorum.truncate(1)
    driver.quorum.append(memoryview(batch_of(1, 5)))
    assert written.sync is not None
    driver.quorum.synced(written.sync, driver.now)
    assert driver.quorum.synced_offset == 1


# --- fetches and snapshots --------------------------------------------------------------------


def test_a_fetch_at_the_end_waits_for_records() -> None:
    driver = Driver((1,))
    driver.sync(driver.quorum.take())
    end = driver.quorum.log.end_offset
    assert driver.fetch(9, end, 1) is not None  # It returns the high watermark at once.
    waiting = messages.fetch_request(CLUSTER, key_of(9), 1, OffsetAndEpoch(end, 1), end, 1000)
    assert driver.receive(waiting) is None
    driver.quorum.propose(bytearray(batch_of(end, 1)), driver.now)
    (reply,) = driver.quorum.take().replies
    assert isinstance(reply.message, fetch.FetchResponse)
    assert reply.message.responses[0].partitions[0].records == batch_of(end, 1)


def test_a_fetch_that_waits_long_enough_is_answered_empty() -> None:
    driver = Driver((1,))
    driver.sync(driver.quorum.take())
    end = driver.quorum.log.end_offset
    waiting = messages.fetch_request(CLUSTER, key_of(9), 1, OffsetAndEpoch(end, 1), end, 1000)
    driver.receive(waiting)
    (reply,) = driver.pass_time(500).replies
    assert isinstance(reply.message, fetch.FetchResponse)
    assert reply.message.responses[0].partitions[0].records == b""


@pytest.mark.parametrize(("offset", "last_epoch"), [(-1, 0), (0, -1), (0, 9)])
def test_impossible_fetches_are_invalid(offset: int, last_epoch: int) -> None:
    driver = Driver((1,))
    partition = driver.fetch(2, offset, last_epoch)
    assert partition.error_code == errors.InvalidRequest.code


def test_a_log_that_diverges_gets_the_end_of_the_common_epoch() -> None:
    driver = Driver((1,), epochs=(1, 1, 3))
    partition = driver.fetch(2, 5, 2)
    assert partition.diverging_epoch == fetch.EpochEndOffset(1, 2)


def test_a_log_before_the_snapshot_gets_its_id() -> None:
    driver = Driver((1,), epochs=(1, 1, 3))
    ModelLog(driver.disk).take_snapshot(2, driver.quorum.history, [])
    assert driver.fetch(2, 0, 0).snapshot_id == fetch.SnapshotId(2, 1)
    assert driver.fetch(2, 1, 1).snapshot_id == fetch.SnapshotId(2, 1)


def test_a_snapshot_is_received_in_pieces_and_installed() -> None:
    source = Driver((1,), epochs=(1, 1, 3))
    ModelLog(source.disk).take_snapshot(2, source.quorum.history, [])
    ((_, data),) = source.disk.snapshots.items()
    driver = Driver()
    output = driver.follow()
    partition = fetch.PartitionData(snapshot_id=fetch.SnapshotId(2, 1))
    answer: Any = messages.fetch_answer(partition, Leadership(5, 2))
    output = driver.answer(output, fetch.FetchRequest, answer)
    for piece in (data[:10], data[10:]):
        (asked,) = requests_of(output, fetch_snapshot.FetchSnapshotRequest)
        position = asked.topics[0].partitions[0].position
        part = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
            snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(2, 1),
            size=len(data),
            position=position,
            unaligned_records=piece,
        )
        answer = messages.snapshot_answer(part, Leadership(5, 2))
        output = driver.answer(output, fetch_snapshot.FetchSnapshotRequest, answer)
    assert driver.quorum.log.start_offset == driver.quorum.high_watermark == 2
    assert driver.quorum.voters == voters_of(1)


@pytest.mark.parametrize(
    ("snapshot", "position", "error"),
    [
        ((3, 1), 0, errors.SnapshotNotFound),
        ((0, 0), 0, errors.SnapshotNotFound),
        ((2, 1), 10_000, errors.PositionOutOfRange),
        ((2, 1), -1, errors.PositionOutOfRange),
    ],
)
def test_pieces_that_a_snapshot_lacks_are_refused(
    snapshot: tuple[int, int], position: int, error: type[errors.KafkaError]
) -> None:
    driver = Driver((1,), epochs=(1, 1, 3))
    ModelLog(driver.disk).take_snapshot(2, driver.quorum.history, [])
    request = messages.snapshot_request(
        CLUSTER, key_of(2), driver.quorum.epoch, OffsetAndEpoch(*snapshot), position, 100
    )
    assert driver.receive(request).topics[0].partitions[0].error_code == error.code


# --- voters -----------------------------------------------------------------------------------


def leading_alone() -> Driver:
    driver = Driver((1,))
    driver.sync(driver.quorum.take())
    return driver


def add_request(node_id: int, *, ack_when_committed: bool = True) -> Any:
    at = endpoint(node_id)
    return add_raft_voter.AddRaftVoterRequest(
        CLUSTER,
        5000,
        *key_of(node_id),
        [add_raft_voter.Listener(at.name, at.host, at.port)],
        ack_when_committed,
    )


def versions() -> Any:
    feature = api_versions.SupportedFeatureKey("kraft.version", 0, 1)
    return api_versions.ApiVersionsResponse(supported_features=[feature])


def catch_up(driver: Driver, replica: int) -> None:
    driver.fetch(replica, driver.quorum.log.end_offset, driver.quorum.epoch)


def test_a_voter_is_added_when_the_new_voters_have_committed_it() -> None:
    driver = leading_alone()
    catch_up(driver, 2)
    assert driver.receive(add_request(2)) is None
    output = driver.answer(driver.output, api_versions.ApiVersionsRequest, versions())
    assert driver.quorum.voters == voters_of(1, 2)
    driver.sync(output)
    catch_up_request = messages.fetch_request(
        CLUSTER, key_of(2), 1, OffsetAndEpoch(driver.quorum.log.end_offset, 1), -1, 1000
    )
    driver.quorum.receive(9, catch_up_request, driver.now)
    replies = {one.token: one.message for one in driver.quorum.take().replies}
    assert replies[7] == add_raft_voter.AddRaftVoterResponse(0, 0, None)


def test_a_voter_is_added_at_once_if_no_commit_is_asked_for() -> None:
    driver = leading_alone()
    catch_up(driver, 2)
    driver.receive(add_request(2, ack_when_committed=False))
    output = driver.answer(driver.output, api_versions.ApiVersionsRequest, versions())
    assert [one.message for one in output.replies if one.token == 7] == [
        add_raft_voter.AddRaftVoterResponse(0, 0, None)
    ]


def test_a_replica_that_lacks_the_log_is_not_added() -> None:
    driver = leading_alone()
    driver.receive(add_request(2))
    (reply,) = driver.answer(driver.output, api_versions.ApiVersionsRequest, versions()).replies
    assert isinstance(reply.message, add_raft_voter.AddRaftVoterResponse)
    assert reply.message.error_code == errors.RequestTimedOut.code
    assert driver.quorum.voters == voters_of(1)


def test_a_second_change_of_the_voters_is_refused() -> None:
    driver = leading_alone()
    driver.receive(add_request(2))
    assert driver.receive(add_request(3)).error_code == errors.RequestTimedOut.code


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add_request(1), errors.DuplicateVoter),
        (add_raft_voter.AddRaftVoterRequest(CLUSTER, 0, 2), errors.InvalidRequest),
        (
            add_raft_voter.AddRaftVoterRequest(CLUSTER, 0, *key_of(2)),
            errors.InvalidRequest,
        ),
        (remove_raft_voter.RemoveRaftVoterRequest(CLUSTER, *key_of(2)), errors.VoterNotFound),
        (remove_raft_voter.RemoveRaftVoterRequest(CLUSTER, *key_of(1)), errors.InvalidRequest),
        (
            remove_raft_voter.RemoveRaftVoterRequest("another", *key_of(1)),
            errors.InconsistentClusterId,
        ),
    ],
)
def test_impossible_changes_of_the_voters_are_refused(
    request_: Any, error: type[errors.KafkaError]
) -> None:
    driver = leading_alone()
    assert driver.receive(request_).error_code == error.code
    assert driver.quorum.voters == voters_of(1)


def test_static_voters_do_not_change() -> None:
    driver = Driver((1,), kraft_version=0)
    driver.sync(driver.quorum.take())
    assert driver.receive(add_request(2)).error_code == errors.UnsupportedVersion.code


def test_a_truncated_log_returns_to_the_voters_before() -> None:
    driver = Driver()
    driver.quorum.epoch = 5
    driver.quorum.append_control([voters_of(1, 2, 3, 4).record()])
    assert driver.quorum.voters == voters_of(1, 2, 3, 4)
    driver.quorum.truncate(0)
    assert driver.quorum.voters == voters_of(1, 2, 3)


def test_an_upgrade_of_kraft_version_waits_for_the_directories_of_all_voters() -> None:
    driver = Driver((1, 2), kraft_version=0)
    driver.elect()
    with pytest.raises(errors.InvalidUpdateVersion, match="voter 2 has not reported"):
        driver.quorum.upgrade(1, driver.now)
    update = messages.update_voter_request(
        CLUSTER, driver.quorum.epoch, key_of(2), (endpoint(2),), (0, 1)
    )
    assert driver.receive(update).error_code == 0
    driver.quorum.upgrade(1, driver.now)
    assert driver.quorum.history.is_dynamic
    assert driver.quorum.voters == voters_of(1, 2)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        messages.vote_request(
            "another", key_of(2), key_of(1), 5, OffsetAndEpoch(0, 0), pre_vote=False
        ),
        messages.fetch_request("another", key_of(2), 5, OffsetAndEpoch(0, 0), -1, 10),
    ],
)
def test_another_cluster_is_refused_and_changes_nothing(request_: Any) -> None:
    driver = Driver()
    assert driver.receive(request_).error_code == errors.InconsistentClusterId.code
    assert driver.quorum.epoch == 0


@pytest.mark.parametrize(
    "request_",
    [
        vote.VoteRequest(CLUSTER),
        fetch.FetchRequest(cluster_id=CLUSTER),
        fetch.FetchRequest(
            topics=[fetch.FetchTopic("orders", partitions=[fetch.FetchPartition()])]
        ),
        fetch_snapshot.FetchSnapshotRequest(CLUSTER),
    ],
)
def test_requests_for_other_partitions_are_invalid(request_: Any) -> None:
    assert Driver().receive(request_).error_code == errors.InvalidRequest.code


@pytest.mark.parametrize(
    "last", [OffsetAndEpoch(-1, 0), OffsetAndEpoch(0, -1), OffsetAndEpoch(0, 3)]
)
def test_impossible_votes_are_invalid(last: OffsetAndEpoch) -> None:
    driver = Driver()
    assert driver.vote(2, 3, last).error_code == errors.InvalidRequest.code
    assert driver.quorum.epoch == 0


def test_a_vote_for_another_voter_is_refused() -> None:
    driver = Driver()
    request = messages.vote_request(
        CLUSTER, key_of(2), key_of(3), 5, OffsetAndEpoch(0, 0), pre_vote=False
    )
    partition = driver.receive(request).topics[0].partitions[0]
    assert partition.error_code == errors.InvalidVoterKey.code


def test_a_second_leader_of_an_epoch_is_not_followed() -> None:
    driver = Driver()
    driver.follow(leader=2)
    partition = driver.receive(_begin(3, 5)).topics[0].partitions[0]
    assert partition.error_code == errors.InvalidRequest.code
    assert driver.quorum.leadership.leader_id == 2


def test_an_old_epoch_is_answered_with_the_leader() -> None:
    driver = Driver()
    driver.follow(leader=2, epoch=5)
    answer = driver.receive(_begin(3, 4))
    partition = answer.topics[0].partitions[0]
    assert partition.error_code == errors.FencedLeaderEpoch.code
    assert (partition.leader_id, partition.leader_epoch) == (2, 5)
    assert answer.node_endpoints[0].host == "host2"


def test_a_quorum_is_described_by_its_leader_alone() -> None:
    topic = describe_quorum.DescribeQuorumRequestTopicData(
        "__cluster_metadata", [describe_quorum.DescribeQuorumRequestPartitionData(0)]
    )
    request = describe_quorum.DescribeQuorumRequest([topic])
    refused = Driver().receive(request).topics[0].partitions[0]
    assert refused.error_code == errors.NotLeaderOrFollower.code
    driver = leading_alone()
    catch_up(driver, 5)
    described = driver.receive(request).topics[0].partitions[0]
    assert [one.replica_id for one in described.current_voters] == [1]
    assert [one.replica_id for one in described.observers] == [5]
    assert described.high_watermark == driver.quorum.log.end_offset


def test_a_replica_that_does_not_lead_takes_no_records() -> None:
    driver = Driver()
    with pytest.raises(errors.NotLeaderOrFollower):
        driver.quorum.propose(bytearray(batch_of(0, 0)), driver.now)


def test_a_leader_that_stops_hands_over_and_refuses_fetches() -> None:
    driver = Driver()
    driver.elect()
    driver.fetch(3, driver.quorum.log.end_offset, 1)
    driver.quorum.stop(driver.now)
    asked = requests_of(driver.quorum.take(), EndQuorumEpochRequest)
    assert [one.topics[0].partitions[0].preferred_successors for one in asked] == [[3, 2]] * 2
    assert driver.fetch(2, 0, 0).error_code == errors.BrokerNotAvailable.code
    assert not isinstance(driver.quorum.state, Leader)
