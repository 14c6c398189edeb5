"""A shard of groups without a broker: effects are carried out on a simulated clock, in memory."""

from typing import Any

from headrace.coordination.effects import Effects, RecordFacts, TimerKey
from headrace.coordination.timers import TimerQueue
from headrace.errors import KafkaError
from headrace.groups.classic import Joining, heartbeat, join, leave, sync
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.offsets import check_commit, commit
from headrace.groups.shard import GroupShard
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import encode
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.schemas.join_group import JoinGroupResponse
from headrace.protocol.schemas.leave_group import MemberIdentity, MemberResponse
from headrace.protocol.schemas.records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.schemas.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from headrace.protocol.uuids import ZERO
from headrace.settings.broker import BrokerSettings

GROUP = "readers"
START_MS = 1_700_000_000_000


class Ticket:
    """A request that waits; its answer comes here."""

    def __init__(self) -> None:
        self.answer: Any = None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None

    @property
    def code(self) -> int:
        assert self.answer is not None, "still waiting"
        code: int = self.answer.error_code
        return code


class ShardInMemory:
    """What the broker's shell does, with a list for a log."""

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        self.settings = settings or BrokerSettings()
        self.now_ms = START_MS
        self.log: list[tuple[CoordinatorRecord, RecordFacts]] = []
        self.refusal: KafkaError | None = None
        self.timers: TimerQueue[TimerKey] = TimerQueue()
        self.state = self._new_state()
        self._ids = 0

    def _new_state(self) -> GroupShard:
        return GroupShard(lambda: self.settings, MetadataImage)

    def carry_out(self, effects: Effects[Any]) -> Any:
        if effects.records and self.refusal is not None:
            if effects.on_refused is not None:
                self.carry_out(effects.on_refused(self.refusal))
            raise self.refusal
        producer_id, epoch = effects.producer or (-1, -1)
        for record in effects.records:
            facts = RecordFacts(len(self.log), self.now_ms, producer_id, epoch)
            self.log.append((record, facts))
            self.state.replay(record, facts)
        for key, delay_ms in effects.timers.items():
            if delay_ms is None:
                self.timers.cancel(key)
            else:
                self.timers.set(key, self.now_ms + delay_ms)
        for ticket, answer in effects.answers:
            assert ticket.answer is None, "answered twice"
            ticket.answer = answer
        return effects.reply

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass; timers run out one by one, at their time."""
        end_ms = self.now_ms + duration_ms
        while (next_ms := self.timers.next_ms) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            for key in self.timers.pop_due(self.now_ms):
                self.carry_out(self.state.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    def restart(self) -> None:
        """Come up again from the log alone."""
        self.timers = TimerQueue()
        self.state = self._new_state()
        for record, facts in self.log:
            self.state.replay(record, facts)
        self.carry_out(self.state.on_loaded(self.now_ms))

    @property
    def group(self) -> ClassicGroup:
        group = self.state.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    # Requests.

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        topics: tuple[str, ...] = ("orders",),
        protocols: tuple[str, ...] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        client_id: str = "client",
        version: int = 9,
    ) -> Ticket:
        self._ids += 1
        ticket = Ticket()
        joining = Joining(
            group_id=GROUP,
            member_id=member_id,
            instance_id=instance_id,
            client_id=client_id,
            client_host="/127.0.0.1",
            protocol_type=protocol_type,
            protocols=tuple((name, subscription(*topics)) for name in protocols),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            new_id=str(self._ids),
            needs_known_id=version >= 4,
            can_skip_assignment=version >= 9,
        )
        return self._answered(ticket, lambda: join(self.state, joining, ticket, self.now_ms))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol: str | None = None,
    ) -> Ticket:
        ticket = Ticket()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(one, share) for one, share in (assignments or {}).items()
            ],
        )
        return self._answered(ticket, lambda: sync(self.state, request, ticket, self.now_ms))

    def _answered(self, ticket: Ticket, decide: Any) -> Ticket:
        try:
            reply = self.carry_out(decide())
        except KafkaError as error:
            reply = SyncGroupResponse(error_code=error.code) if ticket.answer is None else None
        if reply is not None:
            ticket.answer = reply
        return ticket

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        try:
            code: int = self.carry_out(
                heartbeat(self.state, GROUP, member_id, instance_id, generation)
            )
        except KafkaError as error:
            return error.code
        return code

    def leave(self, *members: str | tuple[str, str | None]) -> list[MemberResponse]:
        identities = [
            MemberIdentity(*one) if isinstance(one, tuple) else MemberIdentity(one)
            for one in members
        ]
        responses: list[MemberResponse] = self.carry_out(
            leave(self.state, GROUP, identities, self.now_ms)
        )
        return responses

    def commit(
        self,
        offset: int,
        *,
        member_id: str = "",
        generation: int = -1,
        topic: str = "orders",
        partition: int = 0,
        metadata: str | None = None,
        instance_id: str | None = None,
        version: int = 8,
    ) -> int:
        try:
            check_commit(self.state, GROUP, member_id, instance_id, generation, version=version)
            codes = self.carry_out(
                commit(
                    self.state,
                    GROUP,
                    [(topic, ZERO, partition, offset, -1, metadata)],
                    self.now_ms,
                )
            )
        except KafkaError as error:
            return error.code
        code: int = codes[0]
        return code

    def committed(self, topic: str = "orders", partition: int = 0) -> int | None:
        found = self.state.offsets.find(GROUP, topic, partition)
        return None if found is None else found.offset

    # Builders.

    def new_member(self, **options: Any) -> Ticket:
        """Join as a client does that is told its id first; the ticket is that of the join."""
        first = self.join(**options)
        return self.join(first.answer.member_id, **options)

    def stable_group(self, size: int = 2, **options: Any) -> list[JoinGroupResponse]:
        """A group that has its first assignment, and the answers to its members' joins."""
        tickets = [self.new_member(**options) for _ in range(size)]
        self.pass_time(10_000)
        joined: list[JoinGroupResponse] = [ticket.answer for ticket in tickets]
        self.sync_all(joined)
        return joined

    def sync_all(self, joined: list[JoinGroupResponse]) -> list[Ticket]:
        """Everyone comes for a share; the leader, last, gives each its own name."""
        leader = joined[0].leader
        ids = [one.member_id for one in joined]
        last = sorted(ids, key=lambda one: one == leader)
        shares = {one: one.encode() for one in ids}
        generation = joined[0].generation_id
        return [self.sync(one, generation, shares if one == leader else None) for one in last]


def subscription(*topics: str) -> bytes:
    """What a consumer sends as its metadata."""
    body = encode(ConsumerProtocolSubscription(topics=list(topics)), 0)
    return b"\x00\x00" + bytes(body)
