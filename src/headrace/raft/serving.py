"""The leader's side of the log: answers to fetches, commits, and the description of the quorum."""

from headrace import errors
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas import describe_quorum, fetch, fetch_snapshot
from headrace.raft import messages
from headrace.raft.leading import Diverging, Leader, ParkedFetch, Progress, position_of
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replica import Replica
from headrace.raft.replicas import ReplicaKey


def on_fetch(replica: Replica, token: int, request: fetch.FetchRequest) -> None:
    """Count a fetch as an acknowledgement, and park it; `answer_parked` answers it."""
    asked = request.topics[0].partitions[0]
    leader = replica.state
    error = replica.leader_error(asked.current_leader_epoch)
    is_valid = asked.fetch_offset >= 0 and 0 <= asked.last_fetched_epoch <= replica.epoch
    if error is not None or not is_valid or not isinstance(leader, Leader):
        _refuse(replica, token, error or errors.InvalidRequest)
        return
    position = position_of(replica.log, asked.fetch_offset, asked.last_fetched_epoch)
    key = ReplicaKey(
        max(request.replica_id, request.replica_state.replica_id), asked.replica_directory_id
    )
    if position is None and key.id >= 0:
        known = _known_key(replica, key)
        progress = leader.progress.setdefault(known, Progress())
        progress.acknowledge(asked.fetch_offset, replica.log.end_offset, replica.now.wall_ms)
        _hear(replica, leader, known)
    leader.parked[token] = ParkedFetch(
        token,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        min(asked.partition_max_bytes, request.max_bytes),
        replica.now.ms + request.max_wait_ms,
        min(asked.high_watermark, replica.known_high_watermark),
    )


def _refuse(replica: Replica, token: int, error: type[errors.KafkaError]) -> None:
    partition = fetch.PartitionData(error_code=error.code, high_watermark=-1)
    replica.reply(token, messages.fetch_answer(partition, replica.leadership))


def _known_key(replica: Replica, key: ReplicaKey) -> ReplicaKey:
    """Return the key of a replica; static voters are known by their ids alone."""
    return key if replica.history.is_dynamic else ReplicaKey(key.id)


def _hear(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """Count a fetch of a voter: a leader that a majority reaches stays."""
    if not replica.voters.has(key) or key.id == replica.local.key.id:
        return
    leader.last_fetch_ms[key.id] = replica.now.ms
    leader.heard.add(key.id)
    if leader.is_supported(replica.voters, replica.local.key):
        leader.heard.clear()
        leader.deadline_ms = replica.check_quorum_deadline()


def commit(replica: Replica, leader: Leader) -> None:
    """Move the high watermark to what a majority has synced."""
    offset = leader.high_watermark(replica.voters, replica.local.key, replica.synced_offset)
    if offset > leader.epoch_start:
        replica.raise_high_watermark(offset)


def answer_parked(replica: Replica, leader: Leader) -> None:
    """Answer the fetches that have waited long enough, or have something to learn."""
    for parked in list(leader.parked.values()):
        position = position_of(replica.log, parked.offset, parked.last_epoch)
        is_due = (
            position is not None
            or parked.offset < replica.log.end_offset
            or parked.high_watermark < replica.known_high_watermark
            or parked.deadline_ms <= replica.now.ms
        )
        if is_due:
            del leader.parked[parked.token]
            _answer(replica, parked, position)


def _answer(
    replica: Replica, parked: ParkedFetch, position: OffsetAndEpoch | Diverging | None
) -> None:
    partition = fetch.PartitionData(
        high_watermark=replica.known_high_watermark,
        log_start_offset=replica.log.start_offset,
        records=b"",
    )
    match position:
        case Diverging():
            partition.diverging_epoch = fetch.EpochEndOffset(position.epoch, position.end_offset)
        case OffsetAndEpoch():
            partition.snapshot_id = fetch.SnapshotId(*position)
        case _ if parked.offset < replica.log.end_offset:
            partition.records = replica.log.read(parked.offset, parked.size_max)
    replica.reply(parked.token, messages.fetch_answer(partition, replica.leadership))


def refuse_parked(replica: Replica, ended: Leader) -> None:
    """Refuse the fetches that waited for a leadership which has ended."""
    for token in ended.parked:
        _refuse(replica, token, errors.NotLeaderOrFollower)
    ended.parked.clear()


def on_fetch_snapshot(
    replica: Replica, token: int, request: fetch_snapshot.FetchSnapshotRequest
) -> None:
    """Send a piece of a snapshot."""
    asked = request.topics[0].partitions[0]
    snapshot = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    partition = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(*snapshot)
    )
    error = replica.leader_error(asked.current_leader_epoch)
    size = replica.log.snapshot_size(snapshot) if snapshot.end_offset > 0 else None
    if error is None and size is None:
        error = errors.SnapshotNotFound
    elif error is None and not 0 <= asked.position < (size or 0):
        error = errors.PositionOutOfRange
    if error is None and size is not None and isinstance(replica.state, Leader):
        key = ReplicaKey(request.replica_id, asked.replica_directory_id)
        _hear(replica, replica.state, _known_key(replica, key))
        partition.size, partition.position = size, asked.position
        partition.unaligned_records = replica.log.read_snapshot(
            snapshot, asked.position, max(0, min(request.max_bytes, size - asked.position))
        )
    partition.error_code = messages.code(error)
    replica.reply(token, messages.snapshot_answer(partition, replica.leadership))


def on_describe(
    replica: Replica, token: int, request: describe_quorum.DescribeQuorumRequest
) -> None:
    """Describe the voters and observers; only the leader has their offsets."""
    error = replica.leader_error(-1)
    partition = describe_quorum.DescribeQuorumResponsePartitionData(
        0, messages.code(error), None, replica.leadership.leader_id, replica.epoch
    )
    topic = describe_quorum.DescribeQuorumResponseTopicData(METADATA_TOPIC, [partition])
    answer = describe_quorum.DescribeQuorumResponse(topics=[topic])
    if isinstance(replica.state, Leader) and error is None:
        _describe(replica, replica.state, partition)
        answer.nodes = [
            describe_quorum.Node(
                voter.key.id,
                [describe_quorum.Listener(at.name, at.host, at.port) for at in voter.endpoints],
            )
            for voter in replica.voters.voters
        ]
    replica.reply(token, answer)


def _describe(
    replica: Replica,
    leader: Leader,
    partition: describe_quorum.DescribeQuorumResponsePartitionData,
) -> None:
    wall_ms = replica.now.wall_ms
    leader.forget_observers(replica.voters, wall_ms)
    mine = Progress(replica.log.end_offset, wall_ms, wall_ms)
    partition.high_watermark = replica.known_high_watermark
    partition.current_voters = [
        _described(
            voter.key, mine if voter.matches(replica.local.key) else leader.progress_of(voter)
        )
        for voter in replica.voters.voters
    ]
    partition.observers = [
        _described(key, one) for key, one in leader.progress.items() if not replica.voters.has(key)
    ]


def _described(key: ReplicaKey, progress: Progress) -> describe_quorum.ReplicaState:
    return describe_quorum.ReplicaState(
        *key, progress.end_offset, progress.fetched_ms, progress.caught_up_ms
    )
