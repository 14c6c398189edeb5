"""Producing by version 3: a stream of records in, a stream of results out; and batches.

Each JSON object of the body is a record, so one connection may produce for as long as it likes.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.bodies import read_body
from headrace.http.errors import JSON
from headrace.http.operations import Operation, Parameter
from headrace.http.streams import DuplexResponse
from headrace.rest import overrides
from headrace.rest.errors import ErrorBody, bad_request
from headrace.rest.service import Service
from headrace.rest.v3.answers import CLUSTER, TOPIC, asked_cluster, check_json
from headrace.rest.v3.production import Production, line
from headrace.rest.v3.record_bodies import (
    Batch,
    BatchAnswer,
    Decoded,
    EntryAnswer,
    EntryFailure,
    RecordAnswer,
    RecordBody,
    batch_of,
    records_of,
)

_ENCODER = msgspec.json.Encoder()


class RecordRoutes:
    """Producing in version 3."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        path = "/v3/clusters/{cluster_id}/topics/{topic_name}/records"
        chosen = [
            Parameter(name, "A property of the producer for this request.")
            for name in sorted(overrides.PRODUCER)
        ]
        errors = {404: "There is no such cluster.", 415: "The body is not announced as JSON."}
        return [
            Operation(
                "POST",
                path,
                self.produce,
                "Produce records: one JSON object each, as many as you like.",
                (CLUSTER, TOPIC, *chosen),
                body=RecordBody,
                answer=RecordAnswer,
                errors=errors,
            ),
            Operation(
                "POST",
                f"{path}:batch",
                self.produce_batch,
                "Produce a batch of records, each with an id.",
                (CLUSTER, TOPIC, *chosen),
                body=Batch,
                answer=BatchAnswer,
                errors={**errors, 422: "The batch is empty, too large, or ids occur twice."},
                status=207,
            ),
        ]

    async def produce(self, request: Request) -> Response:
        production = await self._production(request)
        if request.headers.get("content-length") is None:
            return DuplexResponse(production.streamed(request), JSON)
        body = await read_body(request, self._service.settings.request_max_bytes)
        results = await production.results_of(records_of(body))
        if len(results) == 1:
            return Response(_ENCODER.encode(results[0]), media_type=JSON)
        return Response(b"".join(map(line, results)), media_type=JSON)

    async def produce_batch(self, request: Request) -> Response:
        production = await self._production(request)
        body = await read_body(request, self._service.settings.request_max_bytes)
        batch = batch_of(body, self._service.settings.produce_batch_maximum_entries)
        results = await production.results_of([Decoded(one) for one in batch.entries])
        successes, failures = [], []
        for entry, result in zip(batch.entries, results, strict=True):
            if isinstance(result, ErrorBody):
                failures.append(EntryFailure(entry.id, result.error_code, result.message))
            else:
                fields = msgspec.structs.asdict(result)
                del fields["error_code"]
                successes.append(EntryAnswer(entry.id, **fields))
        return Response(_ENCODER.encode(BatchAnswer(successes, failures)), 207, media_type=JSON)

    async def _production(self, request: Request) -> Production:
        check_json(request)
        clients = self._service.clients(request)
        chosen = None
        if request.scope["query_string"]:
            given = dict(request.query_params)
            chosen = overrides.checked(given, overrides.PRODUCER, bad_request)
        cluster_id = await asked_cluster(clients, request)
        topic = request.path_params["topic_name"]
        return Production(self._service, clients.sender(chosen), topic, cluster_id)
