"""A quorum in one thread: replicas with disks, clocks and a network that fail by a seed.

Messages pass through Kafka's encoding, and are delayed, lost, doubled and reordered. A crash takes
what was not synced, or keeps a part of it. `Checker` watches the invariants of Raft at each step.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from headrace.protocol.batches import Record, build_batch
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schemas import (
    add_raft_voter,
    api_versions,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from headrace.raft.effects import LocalReplica, Now, Output, Sync, Timeouts
from headrace.raft.following import control_records
from headrace.raft.leading import Leader
from headrace.raft.quorum import Quorum
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replicas import (
    DYNAMIC_VOTERS,
    Endpoint,
    Node,
    ReplicaKey,
    Voter,
    VoterHistory,
    VoterSet,
)
from tests.builders.raft_logs import Batch, Disk, ModelLog, Snapshot, control_of

LISTENER = "CONTROLLER"
CLUSTER = "simulated"
ANSWERS: dict[type[Message], type[Message]] = {
    vote.VoteRequest: vote.VoteResponse,
    begin_quorum_epoch.BeginQuorumEpochRequest: begin_quorum_epoch.BeginQuorumEpochResponse,
    end_quorum_epoch.EndQuorumEpochRequest: end_quorum_epoch.EndQuorumEpochResponse,
    fetch.FetchRequest: fetch.FetchResponse,
    fetch_snapshot.FetchSnapshotRequest: fetch_snapshot.FetchSnapshotResponse,
    describe_quorum.DescribeQuorumRequest: describe_quorum.DescribeQuorumResponse,
    add_raft_voter.AddRaftVoterRequest: add_raft_voter.AddRaftVoterResponse,
    remove_raft_voter.RemoveRaftVoterRequest: remove_raft_voter.RemoveRaftVoterResponse,
    update_raft_voter.UpdateRaftVoterRequest: update_raft_voter.UpdateRaftVoterResponse,
    api_versions.ApiVersionsRequest: api_versions.ApiVersionsResponse,
}
TIMEOUTS = (
    Timeouts(election_ms=100, election_backoff_max_ms=100, fetch_ms=200, fetch_bytes_max=200),
    Timeouts(election_ms=20, election_backoff_max_ms=20, fetch_ms=100, fetch_bytes_max=200),
)
"""Short times give many elections, some at once, and small fetches many states between them."""
REQUEST_TIMEOUT_MS = 200


def over_the_wire(message: Any) -> Any:
    """Encode a message in its newest version, and decode it as the peer does."""
    version = message.VERSIONS[-1]
    return decode(type(message), version, bytes(encode(message, version)))


def endpoint(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, f"host{node_id}", 9093)


class InvariantBroken(AssertionError):
    """A rule of Raft that must hold at every step does not hold."""


class Checker:
    """The invariants, and the history that they are about."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.epochs: Counter[int] = Counter()
        self.committed: dict[int, Batch] = {}
        self.end_offset = 0

    def require(self, holds: bool, text: str) -> None:
        if not holds:
            raise InvariantBroken(text)

    def led(self, epoch: int, node: "Replica") -> None:
        known = self.leaders.setdefault(epoch, node.id)
        self.require(known == node.id, f"epoch {epoch} has the leaders {known} and {node.id}")
        held = {one.base_offset: one for one in node.history_of_batches()}
        missing = [at for at, one in self.committed.items() if held.get(at) != one]
        self.require(not missing, f"leader {node.id} of epoch {epoch} lacks committed {missing}")

    def entered(self, epoch: int, node: "Replica") -> None:
        self.require(epoch >= self.epochs[node.id], f"the epoch of node {node.id} went back")
        self.epochs[node.id] = epoch

    def committed_by(self, node: "Replica", world: "World") -> None:
        """Compare what a replica takes for committed with what any other ever did."""
        end = node.quorum.high_watermark or 0
        for one in node.history_of_batches():
            if one.end_offset <= end:
                known = self.committed.setdefault(one.base_offset, one)
                self.require(known == one, f"two records are committed at {one.base_offset}")
        if end > self.end_offset:
            self.end_offset = end
            self._check_majority(node, world, end)

    def _check_majority(self, node: "Replica", world: "World", end: int) -> None:
        voters = node.quorum.voters
        holders = [
            one
            for one in voters.voters
            if (replica := world.replicas.get(one.key.id)) is not None
            and one.matches(replica.key)
            and replica.durable_end() >= end
        ]
        self.require(
            len(holders) >= voters.majority,
            f"offset {end} is committed by node {node.id}, and a majority has not synced it",
        )


class Replica:
    """A process with a quorum, its disk and its clock."""

    def __init__(self, world: "World", node_id: int, voters: VoterSet, kraft_version: int) -> None:
        self.world = world
        self.id = node_id
        self.key = ReplicaKey(node_id, bytes([node_id]) * 16)
        self.disk = Disk()
        self.initial = (voters, kraft_version)
        self.skew_ms = world.chance.randint(-100_000, 100_000)
        self.rate = world.chance.choice((0.9, 1.0, 1.1))
        self.life = 0
        self.is_up = False
        self.timer_ms = -1.0
        self.token = 0
        self.waiting: dict[int, Callable[[Message], None]] = {}
        self.quorum: Quorum

    # The process.

    def start(self) -> None:
        self.life += 1
        self.is_up = True
        self.timer_ms = -1.0
        self.waiting = {}
        log = ModelLog(self.disk)
        history = VoterHistory(*self.initial)
        for snapshot, data in self.disk.snapshots.items():
            history.restart_at(snapshot.end_offset, control_of(data))
        for batch in self.disk.written:
            for offset, record in control_records(batch.data):
                history.append(offset, record)
        local = LocalReplica(
            key=self.key,
            cluster_id=CLUSTER,
            listener=LISTENER,
            endpoints=(endpoint(self.id),),
            bootstrap=self.world.bootstrap,
            joins_automatically=self.world.joins_automatically,
        )
        chance = Random(self.world.chance.random())
        self.quorum = self.world.make(
            local, log, history, self.disk.state, self.world.timeouts, chance, self.now()
        )
        self.call(lambda now: self.quorum.tick(now))

    def crash(self) -> None:
        self.is_up = False
        self.disk.lose_power(self.world.chance)

    def bounce(self) -> None:
        self.crash()
        self.start()

    def now(self) -> Now:
        ms = int(self.world.ms * self.rate)
        return Now(ms, ms + self.skew_ms)

    def call(self, function: Callable[[Now], Any]) -> Any:
        """Call the quorum, and carry out the effects."""
        result = function(self.now())
        self._carry_out(self.quorum.take())
        self._set_timer()
        return result

    def _set_timer(self) -> None:
        """Tick at the next deadline, unless an earlier tick is set already."""
        wait_ms = max(1, (self.quorum.next_deadline_ms() - self.now().ms) / self.rate)
        at_ms = self.world.ms + wait_ms
        if wait_ms < 1e6 and not self.world.ms < self.timer_ms <= at_ms:
            self.timer_ms = at_ms
            self.later(wait_ms, lambda: self._tick(at_ms))

    def _tick(self, at_ms: float) -> None:
        if at_ms == self.timer_ms:
            self.call(self.quorum.tick)

    def later(self, wait_ms: float, function: Callable[[], Any]) -> None:
        """Call a function later, unless this process is dead by then."""
        life = self.life
        self.world.at(wait_ms, lambda: function() if self.is_up and self.life == life else None)

    def _carry_out(self, output: Output) -> None:
        checker = self.world.checker
        if output.state is not None:
            self.disk.state = output.state
            self.world.stored(self, output.state)
            checker.entered(output.state.leader_epoch, self)
        if output.leadership is not None and output.leadership.leader_id == self.id:
            checker.led(output.leadership.epoch, self)
        if output.high_watermark is not None:
            checker.committed_by(self, self.world)
        for reply in output.replies:
            answer = self.waiting.pop(reply.token, None)
            if answer is not None:
                answer(over_the_wire(reply.message))
        for request in output.requests:
            self.world.send(self, request.to, request.token, over_the_wire(request.message))
        if output.sync is not None:
            sync = output.sync
            self.later(self.world.chance.expovariate(1 / 3), lambda: self._sync(sync))

    def _sync(self, sync: Sync) -> None:
        if sync.truncations == self.quorum.truncations:
            self.disk.sync(sync.end_offset)
        self.call(lambda now: self.quorum.synced(sync, now))

    def receive(self, message: Message, answer: Callable[[Message], None]) -> None:
        if isinstance(message, api_versions.ApiVersionsRequest):
            feature = api_versions.SupportedFeatureKey("kraft.version", 0, 1)
            answer(api_versions.ApiVersionsResponse(supported_features=[feature]))
            return
        self.token += 1
        token = self.token
        self.waiting[token] = answer
        self.call(lambda now: self.quorum.receive(token, message, now))

    # Content of its disk.

    def history_of_batches(self) -> list[Batch]:
        return self._before_the_log() + self.disk.written

    def _before_the_log(self) -> list[Batch]:
        for data in self.disk.snapshots.values():
            return msgspec.msgpack.decode(data, type=Snapshot).batches
        return []

    def durable_end(self) -> int:
        durable = self.disk.durable
        return durable[-1].end_offset if durable else self.disk.start.end_offset

    def take_snapshot(self) -> None:
        limit = self.snapshot_limit()
        ends = [one.end_offset for one in self.disk.durable if one.end_offset <= limit]
        end = max(ends, default=0)
        if end > self.disk.start.end_offset:
            ModelLog(self.disk).take_snapshot(end, self.quorum.history, self._before_the_log())

    def snapshot_limit(self) -> int:
        return self.quorum.high_watermark or 0

    @property
    def leads(self) -> bool:
        return self.is_up and isinstance(self.quorum.state, Leader)


@dataclass(order=True)
class Event:
    ms: float
    number: int
    run: Callable[[], Any] = field(compare=False)


class World:
    """Replicas, the network between them, and the faults of a storm."""

    def __init__(
        self,
        seed: int,
        voter_count: int = 3,
        observer_count: int = 0,
        *,
        kraft_version: int = DYNAMIC_VOTERS,
        joins_automatically: bool = False,
        make: Callable[..., Quorum] = Quorum,
        replica: type[Replica] = Replica,
    ) -> None:
        self.chance = Random(seed)
        self.make = make
        self.ms = 0.0
        self.checker = Checker()
        self.joins_automatically = joins_automatically
        self.timeouts = self.chance.choice(TIMEOUTS)
        self.is_stormy = False
        self.loss = 0.0
        self.delay_ms = 2.0
        self.cut: set[tuple[int, int]] = set()
        self.appended = 0
        self.acknowledged: dict[int, int] = {}
        self._events: list[Event] = []
        self._number = 0
        ids = range(1, voter_count + observer_count + 1)
        self.bootstrap = tuple(Node(-1 - id_, f"host{id_}", 9093) for id_ in ids)
        voters = VoterSet.of(
            Voter(
                ReplicaKey(id_, bytes([id_]) * 16 if kraft_version else bytes(16)),
                (endpoint(id_),),
            )
            for id_ in ids[:voter_count]
        )
        self.replicas = {id_: replica(self, id_, voters, kraft_version) for id_ in ids}
        for one in self.replicas.values():
            one.start()

    # Time.

    def at(self, wait_ms: float, run: Callable[[], Any]) -> None:
        self._number += 1
        heapq.heappush(self._events, Event(self.ms + wait_ms, self._number, run))

    def run(self, for_ms: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Run events for a time, or until a condition holds; returns whether it does."""
        end_ms = self.ms + for_ms
        while self._events and self._events[0].ms <= end_ms:
            if until():
                return True
            event = heapq.heappop(self._events)
            self.ms = event.ms
            event.run()
        self.ms = end_ms
        return until()

    # The network.

    def send(self, sender: Replica, to: Node, token: int, message: Message) -> None:
        """Deliver a request and its answer, unless one is lost; then the request times out."""
        target = self.replicas[int(to.host.removeprefix("host"))]
        sender.later(
            REQUEST_TIMEOUT_MS, lambda: sender.call(lambda now: sender.quorum.failed(token, now))
        )

        life = sender.life  # Its connections end with a process.

        def answered(answer: Message) -> None:
            def arrive() -> None:
                if sender.life == life:
                    sender.call(lambda now: sender.quorum.answered(token, answer, now))

            self._deliver(target, sender, arrive)

        self._deliver(sender, target, lambda: target.receive(message, answered))

    def _deliver(self, source: Replica, target: Replica, run: Callable[[], Any]) -> None:
        copies = 2 if self.loss and self.chance.random() < 0.02 else 1
        for _ in range(copies):
            if (source.id, target.id) in self.cut or self.chance.random() < self.loss:
                continue
            wait_ms = self.chance.expovariate(1 / self.delay_ms)
            self.at(wait_ms, lambda: run() if target.is_up else None)

    # Load and faults.

    def append(self) -> None:
        """Append a record at whichever replica takes itself for the leader."""
        leaders = [one for one in self.replicas.values() if one.leads]
        if not leaders:
            return
        leader = self.chance.choice(leaders)
        self.appended += 1
        quorum = leader.quorum
        record = Record(quorum.log.end_offset, 0, None, str(self.appended).encode())
        data = build_batch([record], leader_epoch=quorum.epoch)
        leader.call(lambda now: quorum.propose(data, now))

    def change_voters(self) -> None:
        """Ask a leader to add or to remove a replica."""
        leader = next((one for one in self.replicas.values() if one.leads), None)
        if leader is None:
            return
        changed = self.chance.choice(list(self.replicas.values()))
        if leader.quorum.voters.find(changed.id) is None:
            at = endpoint(changed.id)
            request: Message = add_raft_voter.AddRaftVoterRequest(
                CLUSTER,
                5_000,
                *changed.key,
                [add_raft_voter.Listener(at.name, at.host, at.port)],
                self.chance.random() < 0.5,
            )
        elif len(leader.quorum.voters.voters) > 2:
            request = remove_raft_voter.RemoveRaftVoterRequest(CLUSTER, *changed.key)
        else:
            return
        leader.receive(request, lambda answer: None)
        if self.chance.random() < 0.3:
            leader.later(self.chance.expovariate(1 / 5), leader.bounce)

    def trouble(self) -> None:
        """Let one thing go wrong, or get better."""
        replica, other = self.chance.sample(list(self.replicas.values()), 2)
        leaders = [one for one in self.replicas.values() if one.leads]
        if leaders and self.chance.random() < 0.3:
            replica = self.chance.choice(leaders)
        match self.chance.randrange(10):
            case 0 | 1 | 8 if replica.is_up:
                replica.crash()
            case 0 | 1 | 2 | 8 if not replica.is_up:
                replica.start()
            case 9 if replica.is_up:
                replica.bounce()
            case 3:
                self.cut.add((replica.id, other.id))
            case 4:
                self.cut.clear()
            case 5:
                self.loss = self.chance.choice((0.0, 0.05, 0.3))
                self.delay_ms = self.chance.choice((2.0, 10.0, 40.0))
            case 6 if replica.is_up:
                replica.take_snapshot()
            case 7 if replica.leads:
                replica.call(replica.quorum.resign)

    def stored(self, replica: Replica, state: QuorumState) -> None:
        """Sometimes crash a replica just after it has stored an epoch, and often after a vote."""
        has_voted = state.voted_id not in (-1, replica.id)
        if self.is_stormy and self.chance.random() < (0.5 if has_voted else 0.05):
            replica.later(self.chance.expovariate(1 / 5), replica.bounce)

    def storm(self, steps: int, *, changes_voters: bool = False) -> None:
        """Append records and cause troubles, often both at nearly the same moment."""
        self.is_stormy = True
        for _ in range(steps):
            self.run(self.chance.choice((1, 5, 20, 50, 300)))
            for _ in range(self.chance.randint(0, 3)):
                self.append()
            if changes_voters and self.chance.random() < 0.1:
                self.change_voters()
            if self.chance.random() < 0.5:
                self.trouble()

    def heal(self) -> None:
        self.is_stormy = False
        self.cut.clear()
        self.loss, self.delay_ms = 0.0, 2.0
        for replica in self.replicas.values():
            if not replica.is_up:
                replica.start()

    def is_whole(self) -> bool:
        """Return whether one leader has committed its log, and all replicas have it."""
        leaders = [one for one in self.replicas.values() if one.leads]
        ends = {one.quorum.log.end_offset for one in self.replicas.values()}
        marks = {one.quorum.high_watermark for one in self.replicas.values()}
        voters = {one.quorum.voters for one in self.replicas.values()}
        return len(leaders) == len(ends) == len(voters) == 1 and marks == ends
