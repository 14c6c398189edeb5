"""An immutable index of access control rules, which finds the rule that decides about a request.

The rules of a subject (a principal, `User:*` or a group) on one type of resource are together: by
literal name, and by prefix with the lengths of the prefixes. A search looks only at rules whose
subject and name match. An update copies the mappings of the subjects that it changes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headrace.runtime.addresses import plain_host
from headrace.security.acls import (
    WILDCARD,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.principals import GROUP, Caller, Principal

_EVERY_USER = "User:*"
_ANY_SUBJECT = ""
"""The subject whose rules are those of all subjects, by which unruled resources are found."""

_IMPLYING = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operations whose permission implies another one. A denial implies nothing."""

_DENYING = {one: frozenset((one, Operation.ALL)) for one in Operation}
_ALLOWING = {one: _DENYING[one].union(_IMPLYING.get(one, ())) for one in Operation}


class AclIndex:
    """All rules of a cluster; any thread may search."""

    __slots__ = ("_subjects",)

    def __init__(self, subjects: "Mapping[_Key, _Patterns] | None" = None) -> None:
        self._subjects = subjects or {}

    @classmethod
    def of(cls, bindings: Iterable[AclBinding]) -> "AclIndex":
        return cls().changed(added=bindings)

    def changed(
        self, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()
    ) -> "AclIndex":
        """Return an index with more and fewer rules."""
        changes: dict[_Key, Counter[_Rule]] = {}
        for step, bindings in ((1, added), (-1, removed)):
            for binding in bindings:
                rule = _Rule(plain_host(binding.host), binding)
                for subject in (binding.principal, _ANY_SUBJECT):
                    key = (binding.resource_type, subject)
                    changes.setdefault(key, Counter())[rule] += step
        subjects = dict(self._subjects)
        for key, rules in changes.items():
            patterns = subjects.pop(key, _NO_PATTERNS).changed(rules)
            if patterns.literal or patterns.prefixed:
                subjects[key] = patterns
        return AclIndex(subjects)

    def find(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str
    ) -> AclBinding | None:
        """Return the rule that decides, a denial before others; None if no rule matches."""
        host = plain_host(caller.host)
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        found = None
        for patterns in self._of(caller.principal, kind):
            for rules in patterns.matching(name):
                for rule_host, binding in rules:
                    if rule_host not in (WILDCARD, host):
                        continue
                    if binding.permission is not Permission.ALLOW:
                        if binding.operation in denying:
                            return binding
                    elif found is None and binding.operation in allowing:
                        found = binding
        return found

    def has_rules_for(self, kind: ResourceType, name: str) -> bool:
        """Return whether a resource has any rule, for whomever it is."""
        patterns = self._subjects.get((kind, _ANY_SUBJECT))
        return patterns is not None and bool(patterns.matching(name))

    def allows_somewhere(self, caller: Caller, operation: Operation, kind: ResourceType) -> bool:
        """Return whether rules allow an operation on at least one resource of a type.

        As in Kafka, implied operations do not count, and a permission does not count if a denial
        covers all of its names.
        """
        host = plain_host(caller.host)
        denied = {PatternType.LITERAL: set[str](), PatternType.PREFIXED: set[str]()}
        allowed: list[AclBinding] = []
        for patterns in self._of(caller.principal, kind):
            for rule_host, binding in patterns.rules():
                if rule_host not in (WILDCARD, host):
                    continue
                if binding.operation not in _DENYING[operation]:
                    continue
                if binding.permission is Permission.ALLOW:
                    allowed.append(binding)
                elif binding.permission is Permission.DENY:
                    denied[binding.pattern_type].add(binding.resource_name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        return any(not _is_dominated(one, denied) for one in allowed)

    def _of(self, principal: Principal, kind: ResourceType) -> "list[_Patterns]":
        """Return the rules of each subject that the principal is."""
        keys = [(kind, f"{principal.type}:{principal.name}")]
        if principal.groups:
            keys += [(kind, f"{GROUP}:{group}") for group in principal.groups]
        keys.append((kind, _EVERY_USER))
        subjects = self._subjects
        return [subjects[key] for key in keys if key in subjects]


class _Rule(NamedTuple):
    """A rule, and its host in the form of callers' hosts."""

    host: str
    binding: AclBinding


_Key = tuple[ResourceType, str]
_Rules = tuple[_Rule, ...]


class _Patterns:
    """Rules by the names that they are for."""

    __slots__ = ("lengths", "literal", "prefixed")

    def __init__(self, literal: Mapping[str, _Rules], prefixed: Mapping[str, _Rules]) -> None:
        self.literal = literal
        self.prefixed = prefixed
        self.lengths = sorted({len(prefix) for prefix in prefixed}, reverse=True)

    def matching(self, name: str) -> list[_Rules]:
        """Return the rules that apply to a resource, the most specific first."""
        literal, prefixed, size = self.literal, self.prefixed, len(name)
        found = [literal[name]] if name in literal else []
        if prefixed:
            heads = [name[:length] for length in self.lengths if length <= size]
            found += [prefixed[head] for head in heads if head in prefixed]
        if WILDCARD in literal and name != WILDCARD:
            found.append(literal[WILDCARD])
        return found

    def rules(self) -> Iterator[_Rule]:
        for by_name in (self.literal, self.prefixed):
            for rules in by_name.values():
                yield from rules

    def changed(self, changes: Counter[_Rule]) -> "_Patterns":
        """Return patterns after a change of the number of some rules."""
        edited: dict[PatternType, dict[str, _Rules]] = {
            PatternType.LITERAL: dict(self.literal),
            PatternType.PREFIXED: dict(self.prefixed),
        }
        touched: dict[tuple[PatternType, str], Counter[_Rule]] = {}
        for rule, step in changes.items():
            place = rule.binding.pattern_type, rule.binding.resource_name
            if place[0] not in edited:
                continue  # A pattern of a newer release matches nothing here.
            if place not in touched:
                touched[place] = Counter(edited[place[0]].get(place[1], ()))
            touched[place][rule] += step
        for (pattern_type, name), counts in touched.items():
            if rules := tuple(counts.elements()):
                edited[pattern_type][name] = rules
            else:
                edited[pattern_type].pop(name, None)
        return _Patterns(edited[PatternType.LITERAL], edited[PatternType.PREFIXED])


_NO_PATTERNS = _Patterns({}, {})


def _is_dominated(allowed: AclBinding, denied: Mapping[PatternType, set[str]]) -> bool:
    """Return whether denials cover every name that a rule allows."""
    name, prefixes = allowed.resource_name, denied[PatternType.PREFIXED]
    if allowed.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return False  # Denials of some prefixes leave other names.
        if name in denied[PatternType.LITERAL]:
            return True
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))
