"""The authorizer of a cluster: decides by access control rules as Kafka's StandardAuthorizer.

A denial wins over every permission. A resource without a matching permission is denied, except that
`allow.everyone.if.no.acl.found` opens resources without any rule. Super users may do everything.
Until the metadata is loaded, only super users are allowed.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

import msgspec

from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord
from headrace.protocol.uuids import Uuid
from headrace.security.acl_index import AclIndex
from headrace.security.acls import AclBinding, Operation, Permission, ResourceType, binding_in
from headrace.security.principals import GROUP, Caller, Principal, parse_principal
from headrace.settings.broker import BrokerSettings

_MEMO_MAX = 16_384
_REMEMBERED_CHARS_MAX = 512
"""Longer names are judged each time: clients invent names of 32,767 characters."""
_ANY_NAME = "hardcode"
"""Kafka's name of a resource without rules of its own, by which it finds super users."""


class Reason(Enum):
    """The reason for a verdict that no rule decides."""

    SUPER_USER = "super user"
    OPEN_RESOURCE = "no rule for the resource, and allow.everyone.if.no.acl.found is true"
    NO_RULE = "no rule allows it"
    NOT_LOADED = "the rules are not loaded yet"


class Verdict(msgspec.Struct, frozen=True):
    """A decision, and the rule or the reason behind it."""

    is_allowed: bool
    cause: AclBinding | Reason

    @property
    def rule(self) -> AclBinding | None:
        """The rule that decided, if a rule did."""
        return self.cause if isinstance(self.cause, AclBinding) else None


_SUPER_USER = Verdict(True, Reason.SUPER_USER)
_OPEN_RESOURCE = Verdict(True, Reason.OPEN_RESOURCE)
_NO_RULE = Verdict(False, Reason.NO_RULE)
_NOT_LOADED = Verdict(False, Reason.NOT_LOADED)


class DecisionLog(Protocol):
    """Receives decisions for the audit log, from any thread."""

    def decided(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str, verdict: Verdict
    ) -> None: ...


class StandardAuthorizer:
    """Decides by the rules of the newest image. Any thread may ask; one thread updates."""

    def __init__(
        self,
        super_users: Iterable[str] = (),
        *,
        allow_everyone: bool = False,
        decisions: DecisionLog | None = None,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allow_everyone = allow_everyone
        self._decisions = decisions
        self._rules: dict[Uuid, AclBinding] = {}
        self._state = _State(None)
        self.version = 0
        """The number of changes of the rules."""

    @property
    def rule_count(self) -> int:
        return len(self._rules)

    def update(self, changes: Mapping[Uuid, AccessControlEntryRecord | None]) -> None:
        """Apply changed rules by id, None for a removed one; from the first call on, decide."""
        index = self._state.index
        if index is not None and not changes:
            return
        removed = [self._rules.pop(key) for key in changes if key in self._rules]
        added = {key: binding_in(one) for key, one in changes.items() if one is not None}
        self._rules.update(added)
        # One assignment: a decision under way uses either the old rules or the new ones.
        self._state = _State((index or AclIndex()).changed(added.values(), removed))
        self.version += 1  # Afterwards, so that no decision of a version is from older rules.

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        kind: ResourceType,
        name: str,
        *,
        is_audited: bool = True,
    ) -> bool:
        """Return whether the caller may do an operation on a resource."""
        verdict = self.decide(caller, operation, kind, name)
        if self._decisions is not None and is_audited:
            self._decisions.decided(caller, operation, kind, name, verdict)
        return verdict.is_allowed

    def decide(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str
    ) -> Verdict:
        """Return the decision with its cause."""
        state = self._state
        key = (caller.principal, caller.host, operation, kind, name)
        verdict = state.verdicts.get(key)
        if verdict is None:
            verdict = self._judge(state.index, caller, operation, kind, name)
            if len(name) <= _REMEMBERED_CHARS_MAX:
                state.remember(key, verdict)
        return verdict

    def allows_any(self, caller: Caller, operation: Operation, kind: ResourceType) -> bool:
        """Return whether the caller may do an operation on at least one resource of a type."""
        if self.decide(caller, operation, kind, _ANY_NAME).is_allowed:
            return True
        state = self._state
        if state.index is None:
            return False
        key = (caller.principal, caller.host, operation, kind)
        allowed = state.anywhere.get(key)
        if allowed is None:
            allowed = state.index.allows_somewhere(caller, operation, kind)
            if len(state.anywhere) < _MEMO_MAX:
                state.anywhere[key] = allowed
        return allowed

    def is_super_user(self, principal: Principal) -> bool:
        names = self._super_users
        if f"{principal.type}:{principal.name}" in names:
            return True
        return bool(principal.groups) and any(
            f"{GROUP}:{group}" in names for group in principal.groups
        )

    def _judge(
        self,
        index: AclIndex | None,
        caller: Caller,
        operation: Operation,
        kind: ResourceType,
        name: str,
    ) -> Verdict:
        if self.is_super_user(caller.principal):
            return _SUPER_USER
        if index is None:
            return _NOT_LOADED
        rule = index.find(caller, operation, kind, name)
        if rule is not None:
            return Verdict(rule.permission is Permission.ALLOW, rule)
        if self._allow_everyone and not index.has_rules_for(kind, name):
            return _OPEN_RESOURCE
        return _NO_RULE


_Question = tuple[Principal, str, Operation, ResourceType, str]


class _State:
    """An index, and the verdicts that were found in it."""

    __slots__ = ("anywhere", "index", "verdicts")

    def __init__(self, index: AclIndex | None) -> None:
        self.index = index
        self.verdicts: dict[_Question, Verdict] = {}
        self.anywhere: dict[tuple[Principal, str, Operation, ResourceType], bool] = {}
        """Answers to questions about any resource of a type, for which all rules are read."""

    def remember(self, question: _Question, verdict: Verdict) -> None:
        if len(self.verdicts) >= _MEMO_MAX:
            self.verdicts.clear()
        self.verdicts[question] = verdict


def configured_authorizer(
    settings: BrokerSettings, decisions: DecisionLog | None = None
) -> StandardAuthorizer | None:
    """Return the authorizer of the settings; None if every client may do everything."""
    if not settings.authorizer_class_name:
        return None
    return StandardAuthorizer(
        parse_super_users(settings.super_users),
        allow_everyone=settings.allow_everyone_if_no_acl_found,
        decisions=decisions,
    )


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of `super.users`; raise `ValueError` for an invalid one."""
    names = [one.strip() for one in text.split(";")]
    return frozenset(str(parse_principal(one)) for one in names if one)
