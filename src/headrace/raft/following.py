"""The follower's side of the log: fetches, truncation, and snapshots of the leader."""

import logging
from collections.abc import Iterable

from headrace import errors
from headrace.protocol import batches
from headrace.protocol.codec import DecodeError
from headrace.protocol.message import Message
from headrace.protocol.quorum_records import decode_control_record
from headrace.protocol.schemas import fetch, fetch_snapshot
from headrace.raft import messages, voter_changes
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replica import Asked, QuorumFailure, Replica
from headrace.raft.replicas import Node
from headrace.raft.states import Download, Follower, Unattached

_log = logging.getLogger(__name__)

FETCHES = (fetch.FetchRequest, fetch_snapshot.FetchSnapshotRequest)


def pursue(replica: Replica, state: Follower | Unattached) -> None:
    """Send the next fetch: to the leader, or to a bootstrap server to find it."""
    if isinstance(state, Follower) and replica.now.ms >= state.update_at_ms:
        state.update_at_ms = replica.now.ms + replica.timeouts.fetch_ms
        request = voter_changes.wanted_request(replica, is_recorded=state.is_recorded)
        if request is not None:
            replica.ask(state.leader, request)
    if any(isinstance(one.message, FETCHES) for one in replica.open()):
        return
    if replica.local.is_controller and replica.synced_offset < replica.log.end_offset:
        return  # The fetch offset acknowledges records, which are not synced yet.
    node = _next_node(replica, state)
    if node is not None:
        download = state.download if isinstance(state, Follower) else None
        replica.ask(node, _request(replica, download))


def _next_node(replica: Replica, state: Follower | Unattached) -> Node | None:
    """Return the leader, or any bootstrap server if the leader is unknown or does not answer."""
    own = {(one.host, one.port) for one in replica.local.endpoints}
    others = [one for one in replica.local.bootstrap if (one.host, one.port) not in own]
    if isinstance(state, Follower) and (replica.asks_leader or not others):
        return state.leader
    return replica.chance.choice(others) if others else None


def _request(replica: Replica, download: Download | None) -> Message:
    if download is None:
        return messages.fetch_request(
            replica.local.cluster_id,
            replica.local.key,
            replica.epoch,
            replica.last,
            replica.known_high_watermark,
            replica.timeouts.fetch_bytes_max,
        )
    return messages.snapshot_request(
        replica.local.cluster_id,
        replica.local.key,
        replica.epoch,
        download.snapshot,
        download.position,
        replica.timeouts.snapshot_bytes_max,
    )


# --- records ----------------------------------------------------------------------------------


def fetch_answered(replica: Replica, asked: Asked, answer: fetch.PartitionData) -> None:
    state = replica.state
    if not isinstance(state, Follower) or answer.error_code:
        replica.back_off(asked)
        return
    state.deadline_ms = replica.fetch_deadline()
    state.has_fetched = True
    replica.asks_leader = True
    if answer.diverging_epoch.epoch >= 0:
        truncate(replica, answer.diverging_epoch)
    elif answer.snapshot_id.end_offset >= 0:
        _begin_download(replica, state, answer.snapshot_id)
    elif not _append(replica, bytes(answer.records or b""), answer.high_watermark):
        replica.back_off(asked)


def truncate(replica: Replica, diverging: fetch.EpochEndOffset) -> None:
    """Remove records that the leader lacks: up to the end of the last epoch in common."""
    local = replica.log.end_of_epoch(diverging.epoch)
    end_offset = min(local.end_offset, diverging.end_offset)
    newest = replica.log.newest_snapshot
    # After a restart the high watermark is unknown, but snapshots have committed records only.
    committed = max(replica.known_high_watermark, 0 if newest is None else newest.end_offset)
    if end_offset < committed:
        raise QuorumFailure(
            f"the leader of epoch {replica.epoch} has the metadata log only up to offset"
            f" {end_offset}, but records up to {committed} are committed here."
            " Do the controllers belong to one cluster?"
        )
    replica.truncate(end_offset)


def _append(replica: Replica, data: bytes, high_watermark: int) -> bool:
    """Append a leader's records; a last batch that was cut off is left for the next fetch."""
    try:
        size = _whole_size(replica, data)
        records = list(control_records(data[:size]))
    except (errors.KafkaError, DecodeError) as error:
        _log.warning("records of the leader rejected", extra={"error": str(error)})
        return False
    if size:
        replica.append(memoryview(data)[:size])
        for offset, record in records:
            replica.history.append(offset, record)
    replica.raise_high_watermark(min(high_watermark, replica.log.end_offset))
    return True


def _whole_size(replica: Replica, data: bytes) -> int:
    """Return the size of the whole batches, which must continue the log."""
    size, next_offset, epoch = 0, replica.log.end_offset, replica.log.last_epoch
    for position, header in batches.headers(data):
        batches.check_crc(data, position, header.size)
        is_next = header.base_offset == next_offset
        if not is_next or not epoch <= header.leader_epoch <= replica.epoch:
            raise errors.InvalidRecord(
                f"a batch of epoch {header.leader_epoch} at offset {header.base_offset}"
                f" cannot follow epoch {epoch} at offset {next_offset}"
            )
        size, next_offset = position + header.size, header.next_offset
        epoch = header.leader_epoch
    return size


def control_records(data: bytes) -> Iterable[tuple[int, Message]]:
    """Return the control records in batches, with their offsets."""
    for position, header in batches.headers(data):
        if header.is_control:
            for record in batches.records_of(data, position):
                message = decode_control_record(record)
                if message is not None:
                    yield record.offset, message


# --- snapshots --------------------------------------------------------------------------------


def _begin_download(replica: Replica, state: Follower, snapshot: fetch.SnapshotId) -> None:
    if snapshot.end_offset < replica.known_high_watermark:
        raise QuorumFailure(
            f"the leader of epoch {replica.epoch} sent a snapshot up to offset"
            f" {snapshot.end_offset}, but records up to {replica.high_watermark} are committed"
            " here. Do the controllers belong to one cluster?"
        )
    state.download = Download(OffsetAndEpoch(snapshot.end_offset, snapshot.epoch))


def snapshot_answered(
    replica: Replica, asked: Asked, answer: fetch_snapshot.FetchSnapshotResponsePartitionSnapshot
) -> None:
    state = replica.state
    if not isinstance(state, Follower) or state.download is None:
        return
    state.deadline_ms = replica.fetch_deadline()
    download = state.download
    snapshot = OffsetAndEpoch(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    is_piece = snapshot == download.snapshot and answer.position == download.position
    data = bytes(answer.unaligned_records or b"")
    if answer.error_code or not is_piece or not data:
        state.download = None  # The next fetch returns the id of a snapshot that the leader has.
        replica.back_off(asked)
        return
    replica.log.receive_snapshot(snapshot, download.position, data)
    download.position += len(data)
    if download.position >= answer.size:
        state.download = None
        _install(replica, snapshot)


def _install(replica: Replica, snapshot: OffsetAndEpoch) -> None:
    replica.history.restart_at(snapshot.end_offset, replica.log.install_snapshot(snapshot))
    replica.truncations += 1
    replica.synced_offset = snapshot.end_offset
    replica.raise_high_watermark(snapshot.end_offset)
