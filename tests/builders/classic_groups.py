"""Classic groups in memory, with the requests of their members."""

from typing import Any

from headrace.errors import KafkaError
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.classic.protocol import Joining
from headrace.groups.classic_requests import heartbeat, join, leave, sync
from headrace.groups.offsets import check_commit, commit
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import encode
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
from tests.builders.group_shards import GroupShell

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


class ShardInMemory(GroupShell):
    """A shard with a classic group."""

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        super().__init__(MetadataImage(), settings or BrokerSettings(), START_MS)
        self._ids = 0

    def give(self, ticket: Ticket, answer: Any) -> None:
        assert ticket.answer is None, "answered twice"
        ticket.answer = answer

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass; timers run out one by one, at their time."""
        end_ms = self.now_ms + duration_ms
        while (next_ms := self.timers.next_ms) is not None and next_ms <= end_ms:
            self.now_ms = max(self.now_ms, next_ms)
            for key in self.timers.pop_due(self.now_ms):
                self.apply(self.state.on_timer(key, self.now_ms))
        self.now_ms = end_ms

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
            reply = self.apply(decide())
        except KafkaError as error:
            reply = SyncGroupResponse(error_code=error.code) if ticket.answer is None else None
        if reply is not None:
            ticket.answer = reply
        return ticket

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        try:
            code: int = self.apply(heartbeat(self.state, GROUP, member_id, instance_id, generation))
        except KafkaError as error:
            return error.code
        return code

    def leave(self, *members: str | tuple[str, str | None]) -> list[MemberResponse]:
        identities = [
            MemberIdentity(*one) if isinstance(one, tuple) else MemberIdentity(one)
            for one in members
        ]
        responses: list[MemberResponse] = self.apply(
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
            codes = self.apply(
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
        """Join as a client that first receives its id; return the ticket of the second join."""
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
    """Metadata as a consumer sends it."""
    body = encode(ConsumerProtocolSubscription(topics=list(topics)), 0)
    return b"\x00\x00" + bytes(body)
