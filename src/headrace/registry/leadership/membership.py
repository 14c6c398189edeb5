"""A member of the registry's group: joins, elects, sends heartbeats.

It runs in a thread of its own, because its requests block. `on_assigned` receives the leader, or
None while it is unknown. A member without a successful heartbeat for the session timeout gives up
leadership; the fence in the log covers the rest.
"""

import logging
import threading
import time
from collections.abc import Callable

import msgspec

from headrace import errors
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.properties import Properties
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
from headrace.registry.leadership import election
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

_PAUSE_S = 0.2
_PAUSE_MAX_S = 5.0
_LEAVE_S_MAX = 2.0
_REQUEST_S_MAX = 5.0


class Membership:
    """The membership of one instance."""

    def __init__(
        self,
        properties: Properties,
        settings: RegistrySettings,
        identity: election.Identity,
        on_assigned: Callable[[election.Identity | None], None],
    ) -> None:
        self._admin = Admin(properties, timeout_s=_REQUEST_S_MAX)
        self._settings = settings
        self._group = settings.schema_registry_group_id
        self._identity = identity
        # A static member: a restarted instance rejoins at once.
        self._instance = identity.url
        self._on_assigned = on_assigned
        self._member_id = ""
        self._generation = -1
        self._coordinator = -1
        self._heard_at = 0.0
        self._wake = threading.Event()
        """Interrupts the thread's waiting."""
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="registry-group", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def rejoin(self) -> None:
        """Rejoin for another election; callable from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """Leave, so that the others need not wait for the session timeout."""
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
            except (errors.HeadraceError, OSError) as error:
                self._reset(error)
                self._give_up_after_silence()
                self._wake.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        self._leave()
        self._admin.close()

    def _reset(self, error: Exception) -> None:
        """Forget the facts that an error invalidates."""
        self._coordinator = -1
        if isinstance(
            error, (errors.UnknownMemberId, errors.IllegalGeneration, errors.FencedInstanceId)
        ):
            self._member_id, self._generation = "", -1
        if isinstance(error, errors.FencedInstanceId):
            self._report_duplicate()
        fields = {"group": self._group, "error": str(error) or type(error).__name__}
        if isinstance(error, (errors.KafkaError, BrokerUnreachable)):
            _log.info("rejoining the registry's group", extra=fields)
        else:
            _log.warning("rejoining the registry's group after an unexpected error", extra=fields)

    def _give_up_after_silence(self) -> None:
        silence_s = time.monotonic() - self._heard_at
        if silence_s > self._settings.kafkagroup_session_timeout_ms / 1000:
            self._assign(None)

    def _assign(self, leader: election.Identity | None) -> None:
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
        except errors.MemberIdRequired:
            joined = self._joined()
        self._generation = joined.generation_id
        assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            members = {
                one.member_id: election.decoded_identity(one.metadata) for one in joined.members
            }
            decided = election.elect(members).encoded()
            assignments = [SyncGroupRequestAssignment(id, decided) for id in members]
        self._apply(self._synced(assignments))

    def _joined(self) -> JoinGroupResponse:
        rebalance_ms = self._settings.kafkagroup_rebalance_timeout_ms
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=self._settings.kafkagroup_session_timeout_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self._member_id,
            group_instance_id=self._instance,
            protocol_type=election.PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(election.PROTOCOL, self._identity.encoded())],
        )
        # The coordinator answers when all members have joined, or after the rebalance timeout.
        answer = self._admin.cluster.ask(
            request, JoinGroupResponse, self._coordinator, rebalance_ms / 1000 + _REQUEST_S_MAX
        )
        if answer.error_code == errors.MemberIdRequired.code:
            self._member_id = answer.member_id
        if answer.error_code:
            raise errors.error_for(answer.error_code, "JoinGroup")
        self._member_id = answer.member_id
        return answer

    def _synced(self, assignments: list[SyncGroupRequestAssignment]) -> election.Assignment:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance,
            protocol_type=election.PROTOCOL_TYPE,
            protocol_name=election.PROTOCOL,
            assignments=assignments,
        )
        rebalance_s = self._settings.kafkagroup_rebalance_timeout_ms / 1000
        answer = self._admin.cluster.ask(
            request, SyncGroupResponse, self._coordinator, rebalance_s + _REQUEST_S_MAX
        )
        if answer.error_code:
            raise errors.error_for(answer.error_code, "SyncGroup")
        return election.decoded_assignment(bytes(answer.assignment))

    def _apply(self, assignment: election.Assignment) -> None:
        self._heard_at = time.monotonic()
        if assignment.error == election.DUPLICATE_URLS:
            self._report_duplicate()
            return
        leader = assignment.master_identity
        if leader is None:
            _log.warning("no eligible leader, so nothing is written", extra={"group": self._group})
        self._assign(leader)

    def _report_duplicate(self) -> None:
        fields = {"group": self._group, "url": self._instance}
        _log.error("two registry instances have the same host.name and host.port", extra=fields)
        self._assign(None)

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
            if answer.error_code == errors.RebalanceInProgress.code:
                return
            if answer.error_code:
                raise errors.error_for(answer.error_code, "Heartbeat")
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
        except (errors.HeadraceError, OSError) as error:
            fields = {"group": self._group, "error": str(error)}
            _log.info("registry's group not left", extra=fields)
