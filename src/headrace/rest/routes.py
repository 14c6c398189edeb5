"""The HTTP interface of the proxy: all its operations, and the page at the root."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from headrace.http.access import OPEN, Authentication
from headrace.http.errors import JSON
from headrace.http.metrics import http_families
from headrace.http.operations import Operation, operation
from headrace.http.operations import operations_of as marked_operations
from headrace.http.product import Product
from headrace.rest.errors import ERRORS
from headrace.rest.push.routes import StreamRoutes
from headrace.rest.service import Service
from headrace.rest.v2.consumers import ConsumerRoutes
from headrace.rest.v2.produce import ProduceRoutes
from headrace.rest.v2.topics import TopicRoutes
from headrace.rest.v3 import topics as v3_topics
from headrace.rest.v3.acls import AclRoutes
from headrace.rest.v3.clusters import ClusterRoutes
from headrace.rest.v3.configs import ConfigRoutes
from headrace.rest.v3.groups import GroupRoutes
from headrace.rest.v3.moves import MoveRoutes
from headrace.rest.v3.multi_topic import MultiTopicRoutes
from headrace.rest.v3.quotas import QuotaRoutes
from headrace.rest.v3.records import RecordRoutes
from headrace.rest.v3.storage import StorageRoutes
from headrace.rest.v3.transactions import TransactionRoutes
from headrace.rest.webhooks.routes import SubscriptionRoutes
from headrace.runtime.exposition import Family, counter, gauge
from headrace.runtime.process import process_families

_TITLE = "Headrace REST proxy"
_PREFIX = "headrace_rest"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #ddd; padding: .3rem .6rem; vertical-align: top }
td:first-child { font-weight: 600; width: 5rem }
code { font-size: .95em }
"""


def application(
    service: Service,
    authentication: Authentication = OPEN,
    more_operations: Sequence[Operation] = (),
) -> Product:
    """Assemble the operations of the proxy, and those of other parts."""

    async def check_ready() -> None:
        # In the proxy's own name, so the answer does not depend on the caller's rights.
        await service.identities.own().cluster_id()

    root = RootPage()
    streams = StreamRoutes(service)
    product = Product(
        title=_TITLE,
        operations=[*operations_of(service), *more_operations, *marked_operations(root)],
        families=lambda: families(service),
        metrics=service.metrics,
        check_ready=check_ready,
        errors=ERRORS,
        authentication=authentication,
        origins=service.settings.origins,
        sockets=streams.sockets(),
        on_stop=service.hub.streams.stop,
        connections_max=service.settings.connections_max,
    )
    root.operations = product.all_operations
    return product


@asynccontextmanager
async def running(service: Service, authentication: Authentication) -> AsyncIterator[Product]:
    async with service.running():
        yield application(service, authentication)


class RootPage:
    """A table of all operations for browsers; clients of version 2 expect an empty object."""

    operations: Sequence[Operation] = ()

    @operation("GET /", answer_types=("text/html",))
    async def page(self, request: Request) -> Response:
        """This page."""
        if "text/html" not in request.headers.get("accept", ""):
            return Response(b"{}", media_type=JSON)
        rows = "\n".join(
            f"<tr><td>{escape(one.method)}</td><td><code>{escape(one.path)}</code></td>"
            f"<td>{escape(one.summary)}</td></tr>"
            for one in self.operations
        )
        return HTMLResponse(f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{_TITLE}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{_TITLE}</h1>
<p>Programs find the same in <a href="/openapi.json">openapi.json</a>.</p>
<table>
{rows}
</table>
</body>
</html>
""")


def operations_of(service: Service) -> list[Operation]:
    """Return the operations without those that the kit adds."""
    kinds = (
        ProduceRoutes,
        RecordRoutes,
        MultiTopicRoutes,
        ConsumerRoutes,
        StreamRoutes,
        SubscriptionRoutes,
        TopicRoutes,
        ClusterRoutes,
        ConfigRoutes,
        v3_topics.TopicRoutes,
        GroupRoutes,
        AclRoutes,
        MoveRoutes,
        StorageRoutes,
        TransactionRoutes,
        QuotaRoutes,
    )
    return [one for kind in kinds for one in kind(service).operations()]


def families(service: Service) -> Iterator[Family]:
    """Yield the metrics of the proxy."""
    yield from http_families(_PREFIX, service.metrics)
    written, webhooks = service.identities.written, service.subscriptions
    yield counter(f"{_PREFIX}_records_written_total", "Records written.", written.records)
    yield counter(f"{_PREFIX}_records_failed_total", "Records not written.", written.failures)
    yield gauge(f"{_PREFIX}_consumer_instances", "Consumer instances.", len(service.instances))
    yield gauge(f"{_PREFIX}_push_clients", "Clients of streams.", service.hub.clients)
    yield gauge(f"{_PREFIX}_push_readers", "Consumers of streams.", service.hub.readers)
    yield gauge(
        f"{_PREFIX}_webhook_subscriptions",
        "Subscriptions that deliver from this process.",
        webhooks.running_count,
    )
    done = webhooks.totals()
    for name, help, value in (
        ("records_delivered", "Records accepted by targets.", done.delivered),
        ("attempts_failed", "Failed deliveries.", done.failed_attempts),
        ("dead_letters", "Records that became dead letters.", done.dead_letters),
    ):
        yield counter(f"{_PREFIX}_webhook_{name}_total", help, value)
    yield from process_families()
