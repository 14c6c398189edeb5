"""A consumer group as it would be after what was decided so far, and the records that say so."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from headrace.coordination.effects import TimerKey
from headrace.groups import consumer_records as records
from headrace.groups.assignors import ASSIGNORS, Assignment, MemberSpecification
from headrace.groups.consumer_context import REBALANCE, SESSION, ConsumerSettings, Context
from headrace.groups.consumer_group import (
    NO_ASSIGNMENT,
    ConsumerGroup,
    MetadataNote,
    subscribed_topics,
)
from headrace.groups.consumer_members import Member, MemberState, ResolvedRegex
from headrace.groups.reconciliation import Reported, Target, reconcile
from headrace.groups.regular_expressions import compiled
from headrace.groups.subscriptions import (
    metadata_hash,
    resolve,
    topic_specifications,
    wanted_ids,
)
from headrace.protocol.coordinator_records import CoordinatorRecord

_REFRESH_MS_MIN = 1_000
"""How often at most a group's patterns are matched anew against all topics."""


class Draft:
    """A group as it would be after the records that were decided on so far."""

    __slots__ = ("_group", "context", "epoch", "members", "records", "regexes", "target_epoch")

    def __init__(self, group: ConsumerGroup, context: Context) -> None:
        self._group = group
        self.context = context
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.members = dict(group.members)
        self.regexes: dict[str, ResolvedRegex] = group.regexes
        self.records: list[CoordinatorRecord] = []

    @property
    def group(self) -> ConsumerGroup:
        """The group as it is."""
        return self._group

    @property
    def waits_for_assignment(self) -> bool:
        return self.epoch > self.target_epoch

    def remove(self, member: Member) -> None:
        del self.members[member.id]
        self.records.extend(records.no_member(self._group.group_id, member.id))

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Hand all that a static member has to its next incarnation."""
        group_id = self._group.group_id
        member = msgspec.structs.replace(old, id=member_id, epoch=0, previous_epoch=0)
        self.remove(old)
        self.members[member_id] = member
        target = self._group.target.get(old.id, NO_ASSIGNMENT)
        self.records.append(records.member_metadata(group_id, member))
        self.records.append(records.target_assignment(group_id, member_id, target))
        self.records.append(records.current_assignment(group_id, member))
        return member

    def take_in(self, member: Member, updated: Member) -> "Change":
        """Note what a member told of itself, and raise the group epoch if that concerns others."""
        self.members[updated.id] = updated
        if updated != member:
            self.records.append(records.member_metadata(self._group.group_id, updated))
        wishes_changed = updated.wishes != member.wishes
        if wishes_changed and updated.topic_regex:
            compiled(updated.topic_regex)  # Refuses one that is wrong.
        self._compare_with_topics(wishes_changed=wishes_changed)
        return Change(updated, wishes_changed)

    def _compare_with_topics(self, *, wishes_changed: bool) -> None:
        """Raise the group epoch if members or topics are not what they were."""
        group, image, note = self._group, self.context.image, self._group.note
        if not wishes_changed and note is not None and group.metadata_hash == note.hash:
            age_ms = self.context.now_ms - note.at_ms
            if note.topics is image.topics:
                if not self.regexes or age_ms < self.context.settings.regex_refresh_interval_ms:
                    return
            elif self.regexes and age_ms < _REFRESH_MS_MIN:
                return
        resolved_anew = self.resolve_regexes()
        hash_now = self.hash_now()
        if wishes_changed or resolved_anew or hash_now != group.metadata_hash:
            self.bump_epoch(hash_now)
        else:
            group.note = MetadataNote(image.topics, hash_now, self.context.now_ms)
        if group.has_partition_metadata:
            self.records.append(records.no_partition_metadata(group.group_id))

    def resolve_regexes(self) -> bool:
        """Match the members' patterns with the topics, and say whether any means others now."""
        changed = self.forget_unused_regexes()
        for regex in sorted({one.topic_regex for one in self.members.values() if one.topic_regex}):
            known = self.regexes.get(regex)
            if known is not None and known.version == self.context.image.offset:
                continue
            found = resolve(regex, self.context.image, self.context.now_ms)
            if known is None or known.topics != found.topics:
                changed = True
                self.regexes = {**self.regexes, regex: found}
                self.records.append(records.regular_expression(self._group.group_id, regex, found))
        return changed

    def forget_unused_regexes(self) -> bool:
        used = {member.topic_regex for member in self.members.values()}
        unused = self.regexes.keys() - used
        for regex in sorted(unused):
            self.records.append(records.no_regular_expression(self._group.group_id, regex))
        self.regexes = {one: topics for one, topics in self.regexes.items() if one in used}
        return bool(unused)

    def hash_now(self) -> int:
        return metadata_hash(subscribed_topics(self.members, self.regexes), self.context.image)

    def bump_epoch(self, hash_now: int) -> None:
        self.epoch += 1
        self.records.append(records.group_epoch(self._group.group_id, self.epoch, hash_now))

    def advance(self, change: "Change", reported: Reported) -> Member:
        """Compute a target if one is due, and take the member a step towards it."""
        member = change.member
        assignment = self._group.target_of(member)
        if self.waits_for_assignment and self.assignment_delay_ms <= 0:
            assignment = self.compute_target().get(member.id, NO_ASSIGNMENT)
        subscribed = wanted_ids(member, self.regexes, self.context.image)
        target = Target(self.target_epoch, assignment, subscribed, change.wishes_changed)
        updated = reconcile(member, target, reported, self._group.is_free)
        if updated != member:
            self.members[updated.id] = updated
            self.records.append(records.current_assignment(self._group.group_id, updated))
        return updated

    @property
    def assignment_delay_ms(self) -> int:
        """How long to wait before the next target, so that many changes share one."""
        last_ms, interval_ms = (
            self._group.assignment_timestamp_ms,
            self.context.settings.assignment_interval_ms,
        )
        return last_ms + interval_ms - self.context.now_ms if last_ms and interval_ms else 0

    def compute_target(self) -> Mapping[str, Assignment]:
        """Have the preferred assignor share out the partitions, and note what is new."""
        group, context = self._group, self.context
        names = subscribed_topics(self.members, self.regexes)
        shares = ASSIGNORS[self.preferred_assignor()](
            {one.id: self._specification(one) for one in self.members.values()},
            topic_specifications(names, context.image),
        )
        for member_id, share in shares.items():
            if group.target.get(member_id) != share:
                self.records.append(records.target_assignment(group.group_id, member_id, share))
        self.target_epoch = self.epoch
        self.records.append(records.target_epoch(group.group_id, self.epoch, context.now_ms))
        return shares

    def _specification(self, member: Member) -> MemberSpecification:
        return MemberSpecification(
            topics=wanted_ids(member, self.regexes, self.context.image),
            previous=self._group.target_of(member),
            instance_id=member.instance_id,
            rack=member.rack_id,
        )

    def preferred_assignor(self) -> str:
        return preferred_assignor(self.members.values(), self.context.settings)

    def timers_of(self, member: Member) -> dict[TimerKey, int | None]:
        """The timers of a member after its heartbeat."""
        group_id, settings = self._group.group_id, self.context.settings
        timers: dict[TimerKey, int | None] = {
            (SESSION, group_id, member.id): settings.session_timeout_ms
        }
        known = self._group.members.get(member.id)
        if known is None or _progress(known) != _progress(member):
            revokes = member.state is MemberState.UNREVOKED_PARTITIONS
            timers[REBALANCE, group_id, member.id] = (
                member.rebalance_timeout_ms if revokes else None
            )
        return timers


class Change(msgspec.Struct, frozen=True):
    """A member as it describes itself now, and whether it wants other topics than before."""

    member: Member
    wishes_changed: bool


def preferred_assignor(members: Iterable[Member], settings: ConsumerSettings) -> str:
    """What most members ask for, or the first that is set up."""
    counts = Counter(one.server_assignor for one in members if one.server_assignor in ASSIGNORS)
    for name, _ in counts.most_common(1):
        return name or settings.assignors[0]
    return settings.assignors[0]


def _progress(member: Member) -> tuple[object, ...]:
    return member.state, member.epoch, member.assigned, member.pending_revocation
