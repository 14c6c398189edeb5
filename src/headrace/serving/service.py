"""The parts of the server: database, refresher, worker pools, and the periodic refresh."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from headrace.runtime.tasks import Tasks
from headrace.serving.database import Database
from headrace.serving.metrics import ServingMetrics
from headrace.serving.queries import Queries
from headrace.serving.refreshing import Refresher
from headrace.serving.settings import ServingSettings
from headrace.serving.workers import WorkerPool


class Service:
    """Shared by all routes; its tasks run within `running`."""

    def __init__(self, settings: ServingSettings) -> None:
        self.settings = settings
        self.metrics = ServingMetrics()
        self.database = Database(settings.memory_bytes, settings.threads, settings.zones[0])
        self.refresher = Refresher(settings, self.database, self.metrics)
        self.queries = Queries(self.database, self.refresher, settings)
        waiting = settings.waiting_max
        self.query_pool = WorkerPool("query", settings.queries_at_once_max, waiting)
        self.lookup_pool = WorkerPool("lookup", settings.lookups_at_once_max, waiting)
        self.is_ready = False
        self.is_broken = False
        self.is_stopped = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """List the tables, then look for new versions periodically."""
        tasks = Tasks(asyncio.get_running_loop(), threads_max=1)
        try:
            await tasks.in_thread(self.refresher.sync)
            self.is_ready = True
            interval_ms = self.settings.refresh_seconds * 1000

            async def refresh() -> None:
                await tasks.in_thread(self.refresher.round)

            tasks.every(lambda: interval_ms, refresh, "refreshing tables")
            yield
        finally:
            self.is_ready = False
            await tasks.stop()
            self.close()

    def close(self) -> None:
        """Stop all queries; one that cannot be interrupted keeps the database open."""
        self.is_stopped = all([self.query_pool.close(), self.lookup_pool.close()])
        self.refresher.close()
        if self.is_stopped:
            self.database.close()
