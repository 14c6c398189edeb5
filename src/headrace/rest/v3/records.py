"""Producing by version 3: streams of records with streams of results, and batches.

Each JSON object of the body is a record, so one request may produce records without end.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.http.bodies import read_body
from headrace.http.errors import JSON
from headrace.http.streams import DuplexResponse
from headrace.rest import overrides
from headrace.rest.errors import ErrorBody
from headrace.rest.routing import Routes, operation
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
from headrace.rest.v3.routing import TOPIC, check_json, checked_cluster

_ENCODER = msgspec.json.Encoder()
_PATH = f"{TOPIC}/records"
_ERRORS = {404: "Not found.", 415: "The body is not announced as JSON."}


class RecordRoutes(Routes):
    """Producing in version 3."""

    @operation(
        "POST",
        _PATH,
        "Produce records, one JSON object each.",
        *overrides.PARAMETERS,
        body=RecordBody,
        answer=RecordAnswer,
        errors=_ERRORS,
    )
    async def produce(self, request: Request) -> Response:
        production = await self._production(request)
        if request.headers.get("content-length") is None:
            return DuplexResponse(production.streamed(request), JSON)
        body = await read_body(request, self.service.settings.request_max_bytes)
        results = await production.results_of(records_of(body))
        if len(results) == 1:
            return Response(_ENCODER.encode(results[0]), media_type=JSON)
        return Response(b"".join(map(line, results)), media_type=JSON)

    @operation(
        "POST",
        f"{_PATH}:batch",
        "Produce a batch of records, each with an id.",
        *overrides.PARAMETERS,
        body=Batch,
        answer=BatchAnswer,
        errors={**_ERRORS, 422: "The batch is empty, too large, or ids occur twice."},
        status=207,
    )
    async def produce_batch(self, request: Request) -> Response:
        production = await self._production(request)
        body = await read_body(request, self.service.settings.request_max_bytes)
        batch = batch_of(body, self.service.settings.produce_batch_maximum_entries)
        results = await production.results_of([Decoded(one) for one in batch.entries])
        successes, failures = [], []
        for entry, result in zip(batch.entries, results, strict=True):
            if isinstance(result, ErrorBody):
                failures.append(EntryFailure(entry.id, result.error_code, result.message))
            else:
                fields = msgspec.structs.asdict(result)
                del fields["error_code"]
                successes.append(EntryAnswer(id=entry.id, **fields))
        return Response(_ENCODER.encode(BatchAnswer(successes, failures)), 207, media_type=JSON)

    async def _production(self, request: Request) -> Production:
        check_json(request)
        sender = self.service.sender(request)
        cluster_id = await checked_cluster(self.service.clients(request), request)
        return Production(self.service, sender, request.path_params["topic_name"], cluster_id)
