"""Writes `docs/reference/acls.md`: the rights that each API checks, and the answer without them.

The rows are those that the handlers declare with `@api`.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from headrace.broker.api.registry import APIS, Entry, registration_of
from headrace.errors import ERROR_NAMES
from headrace.protocol.api_keys import ApiKey
from headrace.security.access import REFUSALS
from headrace.security.acls import ResourceType
from headrace.security.rights import Alternative, Lacking, Right, Rights

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "acls.md"
HEAD = """# Rights by API

This page lists the rights that each API needs, and the answer to a client without them.

```sh
headrace up --set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer \\
  --set super.users=User:ANONYMOUS
headrace acls add --allow-principal ada --operation read --topic orders
```

Without `authorizer.class.name` every client may do everything. With it a client needs a rule for
each right, unless it is a super user. The rights, their order and the error codes are those of
Kafka 4.3. `tools/rights.py` writes this page from the declarations of the handlers.

[Access control](access-control.md) has the semantics of rules.

## APIs

An error is for the whole request, or only for the named resource: the other resources of the
request are served. Resources that are *left out* do not appear in the response.

| API | right | applies to | without the right |
| --- | --- | --- | --- |
"""
TAIL = """
## Details

- An error for a topic without the right is the same for existing and missing topics.
- Metadata creates a missing topic only for clients that may create it.
- Consumer groups match a pattern only with topics that the client may describe. The client whose
  heartbeat matches the pattern decides for all members, as in Kafka.
- Fields for authorized operations contain the operations that the client may do.
- Brokers need `CLUSTER_ACTION` on the cluster for requests to each other. Make their principal a
  super user.
- A changed rule applies to the next request. A fetch that waits was allowed when it arrived.
"""
_NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def render() -> str:
    """Return the page."""
    entries = sorted(APIS.values(), key=lambda entry: entry.key)
    rows = [line for entry in entries for line in rows_of(entry.key, rights_of(entry))]
    free = ", ".join(title(entry.key) for entry in entries if not rights_of(entry))
    sentence = textwrap.fill(f"These APIs need no right: {free}.", 100)
    return HEAD + "".join(line + "\n" for line in rows) + f"\n{sentence}\n" + TAIL


def rights_of(entry: Entry) -> Rights:
    return registration_of(entry.function()).rights or ()


def rows_of(key: ApiKey, rights: Rights) -> Iterator[str]:
    name = title(key)
    for right in rights:
        named = [Alternative(right.operation, right.resource), *right.instead]
        either = " or ".join(f"`{one.operation.name}` on {resource(one)}" for one in named)
        yield f"| {name} | {either} | {right.note} | {answer(right)} |"
        name = ""


def title(key: ApiKey) -> str:
    return "".join(part.capitalize() for part in key.name.split("_"))


def resource(right: Alternative) -> str:
    return ("any " if right.is_any else "the ") + _NAMES[right.resource]


def answer(right: Right) -> str:
    if right.answer:
        return right.answer
    if right.lacking in (Lacking.LEAVES_OUT, Lacking.SHOWS_NOTHING):
        return str(right.lacking.value)
    scope = "request" if right.lacking is Lacking.REFUSES_REQUEST else _NAMES[right.resource]
    if right.resource is ResourceType.CLUSTER and right.lacking is Lacking.REFUSES_RESOURCE:
        scope = "resource"
    return f"`{ERROR_NAMES[REFUSALS[right.resource].code]}` for the {scope}"


def main() -> int:
    """Write the page, or with --check report whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    if parser.parse_args().check:
        return 0 if PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
