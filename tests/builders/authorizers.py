"""An authorizer that grants listed rights, for tests of what is asked."""

from headrace.security.access import Access
from headrace.security.acls import Operation, ResourceType
from headrace.security.principals import USER, Caller, Principal

Right = tuple[Operation, ResourceType, str]


class ListedRights:
    """Grants the listed rights to everybody, and keeps a list of the rights that were asked for."""

    def __init__(self, *rights: Right) -> None:
        self.rights = rights
        self.version = 0
        self.refused = ""
        """A user without any right."""
        self.asked: list[Right] = []

    def allows(
        self,
        caller: Caller,
        operation: Operation,
        kind: ResourceType,
        name: str,
        *,
        is_audited: bool = True,
    ) -> bool:
        self.asked.append((operation, kind, name))
        return caller.principal.name != self.refused and (operation, kind, name) in self.rights

    def allows_any(self, caller: Caller, operation: Operation, kind: ResourceType) -> bool:
        return any(right[:2] == (operation, kind) for right in self.rights)


def access_of(
    user: str, authorizer: ListedRights | None = None, *, is_token_authenticated: bool = False
) -> Access:
    """The rights of a user, who has all of them without an authorizer."""
    principal = Principal(USER, user, is_token_authenticated=is_token_authenticated)
    return Access(authorizer, Caller(principal, "10.0.0.7"))
