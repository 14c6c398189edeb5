"""The HTTP interface of a registry."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from starlette.responses import Response
from starlette.types import Scope

from headrace.http.access import OPEN, Authentication
from headrace.http.addresses import ListenAddress
from headrace.http.errors import Unavailable
from headrace.http.product import Product, stop_this_process
from headrace.registry.errors import ERRORS
from headrace.registry.leadership.election import Identity
from headrace.registry.metrics import families
from headrace.registry.routes.answers import Deployment, ServerId, ServerVersion
from headrace.registry.routes.operations import Routes, operation
from headrace.registry.routes.quick_answers import QuickAnswers
from headrace.registry.routes.requests import CONTEXT_PREFIX, Call, target_of
from headrace.registry.routes.schemas import SchemaRoutes
from headrace.registry.routes.scopes import SettingRoutes
from headrace.registry.routes.subjects import SubjectRoutes
from headrace.registry.service import Registry
from headrace.registry.settings import advertised_host
from headrace.serdes.subject_names import EVERY_CONTEXT


def application(registry: Registry, authentication: Authentication = OPEN) -> Product:
    """Assemble the operations of a registry."""

    def unaliased(subject: str) -> str:
        is_one = subject and not subject.startswith(EVERY_CONTEXT)
        return registry.state.unaliased(subject) if is_one else subject

    def segments(scope: Scope) -> Sequence[str]:
        target = target_of(scope["raw_path"], unaliased)
        scope[CONTEXT_PREFIX] = target.context_prefix
        return target.segments

    async def check_topic() -> None:
        if registry.failure is not None:
            raise Unavailable(f"the topic cannot be followed: {registry.failure}")

    async def check_leader() -> None:
        """Check for a leader too: reads are answered from the start, writes need one."""
        if registry.leader is None:
            raise Unavailable("writes wait for a leader to be elected")
        await check_topic()

    kinds = (SubjectRoutes, SchemaRoutes, SettingRoutes, ServerRoutes)
    return Product(
        title="Headrace schema registry",
        operations=[one for kind in kinds for one in kind(registry).operations()],
        families=lambda: families(
            registry.metrics,
            registry.store,
            is_leader=registry.is_leader,
            has_leader=registry.leader is not None,
        ),
        metrics=registry.metrics.http,
        check_health=check_topic,
        check_ready=check_leader,
        errors=ERRORS,
        authentication=authentication,
        segments=segments,
        allows_empty_segments=True,
        shortcut=lambda app: QuickAnswers(app, registry),
        connections_max=registry.settings.connections_max,
        label=lambda operation: operation.name,
    )


@asynccontextmanager
async def running(
    registry: Registry, authentication: Authentication, bound: ListenAddress
) -> AsyncIterator[Product]:
    """Read the topic, then follow it and take part in the election until the block ends."""
    registry.load()
    settings = registry.settings
    identity = Identity(
        host=settings.host_name or advertised_host(bound.host),
        port=settings.host_port or bound.port,
        master_eligibility=settings.leader_eligibility,
        scheme=settings.inter_instance_protocol,
    )
    async with registry.running(identity, stop_this_process):
        yield application(registry, authentication)


class ServerRoutes(Routes):
    """Facts about the server itself."""

    @operation("GET /")
    async def root(self, call: Call) -> Response:
        """Answer with an empty object."""
        return call.answer({})

    @operation("GET /v1/metadata/id", answer=ServerId)
    async def server_id(self, call: Call) -> Response:
        """Get the ids of the registry and its cluster."""
        clusters = {
            "kafka-cluster": self.registry.cluster_id,
            "schema-registry-cluster": self.registry.settings.schema_registry_group_id,
        }
        return call.answer(ServerId({"path": [], "clusters": clusters}, ""))

    @operation("GET /v1/metadata/version", answer=ServerVersion)
    async def server_version(self, call: Call) -> Response:
        """Get the release."""
        return call.answer(ServerVersion(version("headrace"), ""))

    @operation("GET /v1/metadata/deployment", answer=Deployment)
    async def deployment(self, call: Call) -> Response:
        """Get the attributes of the deployment; it has none."""
        return call.answer(Deployment([]))
