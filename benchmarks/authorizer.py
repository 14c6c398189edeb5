"""`python -m benchmarks.authorizer`: the cost of one decision with 10,000 rules.

It fails if a decision that was made before costs more than its target. New questions are measured
beside it: they search the index. Times are CPU times, the best of some rounds.
"""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle

from headrace.protocol.schemas.records.metadata import AccessControlEntryRecord
from headrace.security.acls import Operation, PatternType, Permission, ResourceType
from headrace.security.authorizer import StandardAuthorizer
from headrace.security.principals import Caller, Principal

RULES = 10_000
USERS = 100
TARGET_US = 2.0
QUESTIONS = 10_000
ROUNDS = 7
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE)


def rules() -> Iterator[AccessControlEntryRecord]:
    """Literal and prefixed rules of many users on many topics, some of them denials."""
    for number in range(RULES):
        is_prefixed = number % 10 == 0
        yield AccessControlEntryRecord(
            number.to_bytes(16),
            ResourceType.TOPIC,
            f"team{number % 50}." if is_prefixed else f"team{number % 50}.topic-{number // 4}",
            PatternType.PREFIXED if is_prefixed else PatternType.LITERAL,
            f"User:user-{number // 4 % USERS}",
            "*",
            OPERATIONS[number % len(OPERATIONS)],
            Permission.DENY if number % 97 == 0 else Permission.ALLOW,
        )


def loaded() -> StandardAuthorizer:
    authorizer = StandardAuthorizer(["User:admin"])
    authorizer.update({one.id: one for one in rules()})
    return authorizer


def best_us(measured: Callable[[], object], count: int) -> float:
    """Return the CPU microseconds of one of `count` calls."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        for _ in range(count):
            measured()
        times.append(time.process_time_ns() - began)
    return min(times) / count / 1000


def repeated(authorizer: StandardAuthorizer) -> float:
    """A client that asks for the same topic again, as each of its requests does."""
    caller = Caller(Principal("User", "user-7"), "10.0.0.7")
    allows = authorizer.allows
    return best_us(
        lambda: allows(caller, Operation.WRITE, ResourceType.TOPIC, "team3.topic-1"),
        QUESTIONS,
    )


def new_questions(authorizer: StandardAuthorizer) -> float:
    """Clients that ask for topics for which they have not asked before."""
    callers = [Caller(Principal("User", f"user-{one}"), "10.0.0.7") for one in range(USERS)]
    names = [f"team{number % 50}.topic-{number}" for number in range(5_000)]
    times = []
    for operation in OPERATIONS:
        began = time.process_time_ns()
        for number, name in enumerate(names):
            authorizer.allows(callers[number % USERS], operation, ResourceType.TOPIC, name)
        times.append(time.process_time_ns() - began)
    return min(times) / len(names) / 1000


def one_more_rule(authorizer: StandardAuthorizer) -> float:
    """The time in which a rule comes into force."""
    records = cycle(list(rules())[:ROUNDS])
    number = iter(range(1 << 32))

    def add() -> None:
        authorizer.update({(RULES + next(number)).to_bytes(16): next(records)})

    return best_us(add, 50)


def main() -> int:
    authorizer = loaded()
    again = repeated(authorizer)
    print(f"rules                {RULES:>9,}")
    print(f"repeated decision    {again:>9.2f} µs (target {TARGET_US:g})")
    print(f"new decision         {new_questions(authorizer):>9.2f} µs")
    print(f"rule comes into force{one_more_rule(authorizer):>9.1f} µs")
    return 0 if again <= TARGET_US else 1


if __name__ == "__main__":
    sys.exit(main())
