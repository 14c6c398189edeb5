"""A member of the registry's group: joins, tells the others who leads, keeps its place.

Runs in a thread of its own, as its requests wait. What it hears goes to `on_assigned`: who leads,
or None while nobody is known to. A member that was not heard for a session's time has lost its
place and with it, for all that it knows, its office; the fence in the log covers the rest.
"""

import logging
import threading
import time
from collections.abc import Callable

import msgspec

from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.properties import Properties
from headrace.errors import (
    FencedInstanceId,
    HeadraceError,
    IllegalGeneration,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    error_for,
)
from headrace.protocol.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.schemas.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from headrace.protocol.schemas.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from headrace.protocol.schemas.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from headrace.registry.leadership.election import (
    DUPLICATE_URLS,
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    decoded_assignment,
    decoded_identity,
    elect,
)
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

_PAUSE_S = 0.2
_PAUSE_MAX_S = 5.0
_LEAVE_S_MAX = 2.0
_REQUEST_S_MAX = 5.0


class Membership:
    """One instance's place in the group."""

    def __init__(
        self,
        properties: Properties,
        settings: RegistrySettings,
        identity: Identity,
        on_assigned: Callable[[Identity | None], None],
    ) -> None:
        self._admin = Admin(properties, timeout_s=_REQUEST_S_MAX)
        self._settings = settings
        self._group = settings.schema_registry_group_id
        self._identity = identity
        # A static member: an instance that is back has its old place at once.
        self._instance = identity.url
        self._on_assigned = on_assigned
        self._member_id = ""
        self._generation = -1
        self._coordinator = -1
        self._heard_at = 0.0
        self._wake = threading.Event()
        """Set when the thread has something else to do than to wait."""
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="registry-group", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def rejoin(self) -> None:
        """Have it settled anew who leads; from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """Leave, so that the others need not wait for us to be missed."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join(_LEAVE_S_MAX)

    def _run(self) -> None:
        pause_s = _PAUSE_S
        while not self._is_stopping:
            try:
                self._join()
                pause_s = _PAUSE_S
                self._stay()
            except (HeadraceError, OSError) as error:
                self._note(error)
                self._give_up_when_unheard()
                self._wake.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        self._leave()
        self._admin.close()

    def _note(self, error: Exception) -> None:
        """After what went wrong with the group: which of the things that we knew are no more."""
        self._coordinator = -1
        if isinstance(error, (UnknownMemberId, IllegalGeneration, FencedInstanceId)):
            self._member_id, self._generation = "", -1
        if isinstance(error, FencedInstanceId):
            _log.error("%s", self._same_place())
            self._tell(None)
        is_usual = isinstance(error, (KafkaError, BrokerUnreachable))
        _log.log(
            logging.INFO if is_usual else logging.WARNING,
            "the group %s is to be joined again: %s",
            self._group,
            error or type(error).__name__,
        )

    def _give_up_when_unheard(self) -> None:
        silence_s = time.monotonic() - self._heard_at
        if silence_s > self._settings.kafkagroup_session_timeout_ms / 1000:
            self._tell(None)

    def _tell(self, leader: Identity | None) -> None:
        is_us = self._identity.is_same(leader)
        self._identity = msgspec.structs.replace(self._identity, leader=is_us)
        self._on_assigned(leader)

    # --- joining ------------------------------------------------------------------------------

    def _join(self) -> None:
        if not self._is_stopping:
            self._wake.clear()
        if self._coordinator < 0:
            self._coordinator = self._admin.groups.coordinator_of(self._group)
        try:
            joined = self._joined()
        except MemberIdRequired:
            joined = self._joined()
        self._generation = joined.generation_id
        assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            members = {one.member_id: decoded_identity(one.metadata) for one in joined.members}
            decided = elect(members).encoded()
            assignments = [SyncGroupRequestAssignment(id, decided) for id in members]
        self._take(self._synced(assignments))

    def _joined(self) -> JoinGroupResponse:
        rebalance_ms = self._settings.kafkagroup_rebalance_timeout_ms
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._settings.kafkagroup_session_timeout_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self._member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(PROTOCOL, self._identity.encoded())],
        )
        # The coordinator answers when all members have come, or their time is up.
        answer = self._admin.cluster.ask(
            request, JoinGroupResponse, self._coordinator, rebalance_ms / 1000 + _REQUEST_S_MAX
        )
        if answer.error_code == MemberIdRequired.code:
            self._member_id = answer.member_id
        if answer.error_code:
            raise error_for(answer.error_code, "JoinGroup")
        self._member_id = answer.member_id
        return answer

    def _synced(self, assignments: list[SyncGroupRequestAssignment]) -> Assignment:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        rebalance_s = self._settings.kafkagroup_rebalance_timeout_ms / 1000
        answer = self._admin.cluster.ask(
            request, SyncGroupResponse, self._coordinator, rebalance_s + _REQUEST_S_MAX
        )
        if answer.error_code:
            raise error_for(answer.error_code, "SyncGroup")
        return decoded_assignment(bytes(answer.assignment))

    def _take(self, assignment: Assignment) -> None:
        self._heard_at = time.monotonic()
        if assignment.error == DUPLICATE_URLS:
            _log.error("%s", self._same_place())
            self._tell(None)
            return
        leader = assignment.master_identity
        if leader is None:
            _log.warning("no member of the group %s may lead, so nothing is written", self._group)
        self._tell(leader)

    def _same_place(self) -> str:
        return (
            f"two members of the group {self._group} say that they are at {self._instance}; give"
            " each its own host.name and host.port, which the others can reach"
        )

    # --- staying ------------------------------------------------------------------------------

    def _stay(self) -> None:
        """Send heartbeats until the group has to be joined again."""
        interval_s = self._settings.kafkagroup_heartbeat_interval_ms / 1000
        while not self._wake.wait(interval_s):
            request = HeartbeatRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance,
            )
            answer = self._admin.cluster.ask(request, HeartbeatResponse, self._coordinator)
            if answer.error_code == RebalanceInProgress.code:
                return
            if answer.error_code:
                raise error_for(answer.error_code, "Heartbeat")
            self._heard_at = time.monotonic()

    def _leave(self) -> None:
        if not self._member_id or self._coordinator < 0:
            return
        request = LeaveGroupRequest(group_id=self._group)
        member = MemberIdentity(member_id=self._member_id, group_instance_id=self._instance)
        try:
            connection = self._admin.cluster.connection(self._coordinator)
            if connection.version_of(request) >= 3:
                request.members = [member]
            else:
                request.member_id = self._member_id
            connection.call(request, LeaveGroupResponse, _LEAVE_S_MAX)
        except (HeadraceError, OSError) as error:
            _log.info("the group %s was not left in order: %s", self._group, error)
