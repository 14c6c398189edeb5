"""PushTelemetry v0: receive the metrics of a client, as OTLP, optionally compressed."""

from headrace.broker.api.registry import Call, api
from headrace.broker.metrics.telemetry import SERIES_PER_CLIENT_MAX, PushedMetrics, attributes_of
from headrace.errors import HeadraceError, InvalidRecord
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.otlp import Series, series_in
from headrace.protocol.schemas.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

_GROWTH_MAX = 32  # The limit of decompressed metrics, in multiples of telemetry.max.bytes.


@api(ApiKey.PUSH_TELEMETRY, versions=range(1), rights=())
async def push_telemetry(request: PushTelemetryRequest, call: Call) -> PushTelemetryResponse:
    telemetry, peer = call.broker.telemetry, call.peer
    telemetry.use(call.broker.image.configs)
    instance_id, now_ms = request.client_instance_id, call.broker.clock.now_ms()
    client = attributes_of(instance_id, call.client_id, peer.software, peer.host, peer.port)
    telemetry.accept(
        instance_id,
        client,
        now_ms,
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        codec=request.compression_type,
        size_bytes=len(request.metrics),
    )
    if request.metrics:
        try:
            series = await call.broker.background(
                _read, request.compression_type, request.metrics, telemetry.size_bytes_max
            )
        except HeadraceError as error:
            telemetry.refused(instance_id, InvalidRecord)
            raise InvalidRecord(f"the metrics cannot be read: {error}") from error
        telemetry.store(instance_id, PushedMetrics(client, now_ms, series))
    return PushTelemetryResponse()


def _read(codec: int, data: bytes, size_bytes_max: int) -> list[Series]:
    """Decode in a thread, so that malformed metrics are rejected before they are stored."""
    from headrace.protocol.compression import decompress

    plain = bytes(decompress(codec, data, size_bytes_max * _GROWTH_MAX))
    return series_in(plain, SERIES_PER_CLIENT_MAX)
