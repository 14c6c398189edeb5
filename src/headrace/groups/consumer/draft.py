"""A consumer group as it would be after a decision: subscriptions, patterns, target, steps."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from headrace.coordination.regular_expressions import compiled
from headrace.groups.assignors import ASSIGNORS, Assignment, MemberSpecification
from headrace.groups.consumer import records
from headrace.groups.consumer.group import (
    ConsumerContext,
    ConsumerGroup,
    ConsumerMemory,
    ConsumerSettings,
    subscribed_topics,
)
from headrace.groups.consumer.reconciliation import Reported, Target, reconcile
from headrace.groups.consumer.records import Member, ResolvedRegex
from headrace.groups.epochs.draft import Draft
from headrace.groups.epochs.group import MetadataNote
from headrace.groups.subscriptions import metadata_hash, topic_specifications
from headrace.protocol.uuids import Uuid

_REFRESH_MS_MIN = 1_000
"""The shortest time between two matches of a group's patterns with all topics."""


class ConsumerDraft(Draft[Member, Assignment]):
    """The next state of a consumer group."""

    group: ConsumerGroup
    context: ConsumerContext
    memory: ConsumerMemory

    def __init__(
        self,
        group: ConsumerGroup,
        context: ConsumerContext,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        """`may_describe` returns whether the client may see a topic; None if it may see all."""
        super().__init__(group, context)
        self._may_describe = may_describe
        self.regexes: Mapping[str, ResolvedRegex] = group.regexes

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Hand everything of a static member to its next incarnation."""
        group_id, kind = self.group.group_id, self.group.records
        member = msgspec.structs.replace(old, id=member_id, epoch=0, previous_epoch=0)
        self.remove(old)
        self.members[member_id] = member
        target = self.group.target.get(old.id, self.group.no_target)
        self.records.append(kind.member(group_id, member))
        self.records.append(kind.target(group_id, member_id, target))
        self.records.append(kind.current(group_id, member))
        return member

    def heartbeat(self, before: Member, after: Member, reported: Reported) -> Member:
        """Put a member in as it describes itself, and take it a step towards its target."""
        self.describe(before, after)
        subscription_changed = after.subscription != before.subscription
        if subscription_changed and after.topic_regex:
            compiled(after.topic_regex)  # Raises for an invalid pattern.
        self._compare_with_topics(subscription_changed=subscription_changed)
        assignment = self.group.target_of(after)
        if self.waits_for_assignment and self.assignment_delay_ms <= 0:
            self._compute_target()
            assignment = self.target.get(after.id, self.group.no_target)
        subscribed = self._subscribed_ids(after)
        target = Target(self.target_epoch, assignment, subscribed, subscription_changed)
        return self.advance(after, reconcile(after, target, reported, self.group.is_free))

    def _compare_with_topics(self, *, subscription_changed: bool) -> None:
        """Raise the group epoch if subscriptions or topics have changed."""
        group, image, note = self.group, self.context.image, self.memory.note
        if not subscription_changed and note is not None and group.metadata_hash == note.hash:
            age_ms = self.context.now_ms - note.at_ms
            if note.topics is image.topics:
                if not self.regexes or age_ms < self.context.settings.regex_refresh_interval_ms:
                    return
            elif self.regexes and age_ms < _REFRESH_MS_MIN:
                return
        regexes_changed = self._resolve_regexes()
        hash_now = self._hash_now()
        if subscription_changed or regexes_changed or hash_now != group.metadata_hash:
            self.bump_epoch(hash_now)
        else:
            note = MetadataNote(image.topics, hash_now, self.context.now_ms)
            self.memory = ConsumerMemory(note, self.memory.joining)
        if group.has_partition_metadata:
            self.records.append(records.no_partition_metadata(group.group_id))

    def _resolve_regexes(self) -> bool:
        """Match the members' patterns with the topics; return whether any result has changed.

        As in Kafka only topics that the present client may see are found, also for the patterns of
        other members.
        """
        changed = self._forget_unused_regexes()
        for regex in sorted({one.topic_regex for one in self.members.values() if one.topic_regex}):
            known = self.regexes.get(regex)
            if known is not None and known.version == self.context.image.offset:
                continue
            found = _resolve(regex, self.context, self._may_describe)
            if known is None or known.topics != found.topics:
                changed = True
                self.regexes = {**self.regexes, regex: found}
                self.records.append(records.regular_expression(self.group.group_id, regex, found))
        return changed

    def _forget_unused_regexes(self) -> bool:
        used = {member.topic_regex for member in self.members.values()}
        unused = self.regexes.keys() - used
        for regex in sorted(unused):
            self.records.append(records.no_regular_expression(self.group.group_id, regex))
        if unused:
            self.regexes = {one: found for one, found in self.regexes.items() if one in used}
        return bool(unused)

    def members_left(self) -> None:
        """Raise the group epoch after members were removed."""
        self._forget_unused_regexes()
        self.bump_epoch(self._hash_now())

    def _hash_now(self) -> int:
        return metadata_hash(subscribed_topics(self.members, self.regexes), self.context.image)

    def _compute_target(self) -> None:
        members = self.members.values()
        names = subscribed_topics(self.members, self.regexes)
        assign = ASSIGNORS[preferred_assignor(members, self.context.settings)]
        self.set_target(
            assign(
                {one.id: self._specification(one) for one in members},
                topic_specifications(names, self.context.image),
            )
        )

    def _specification(self, member: Member) -> MemberSpecification:
        return MemberSpecification(
            topics=self._subscribed_ids(member),
            previous=self.group.target_of(member),
            instance_id=member.instance_id,
            rack=member.rack_id,
        )

    def _subscribed_ids(self, member: Member) -> frozenset[Uuid]:
        """The existing topics that a member subscribes to, by name and by pattern."""
        resolved = self.regexes.get(member.topic_regex) if member.topic_regex else None
        names = member.topic_names if resolved is None else member.topic_names | resolved.topics
        topics = self.context.image.topics
        return frozenset(topics[one].id for one in names if one in topics)


def _resolve(
    pattern: str, context: ConsumerContext, may_describe: Callable[[str], bool] | None
) -> ResolvedRegex:
    """The topics whose whole name a pattern matches."""
    matches, image = compiled(pattern).matches, context.image
    topics = frozenset(
        name
        for name in image.topics
        if matches(name) and (may_describe is None or may_describe(name))
    )
    return ResolvedRegex(topics, version=image.offset, timestamp_ms=context.now_ms)


def preferred_assignor(members: Iterable[Member], settings: ConsumerSettings) -> str:
    """The assignor that most members name, or the first of the settings."""
    counts = Counter(one.server_assignor for one in members if one.server_assignor in ASSIGNORS)
    for name, _ in counts.most_common(1):
        return name or settings.assignors[0]
    return settings.assignors[0]
