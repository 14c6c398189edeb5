"""GetTelemetrySubscriptions v0: the metrics that a client pushes, and the interval."""

from headrace.broker.api.registry import Call, api
from headrace.broker.metrics.telemetry import ACCEPTED_CODECS, attributes_of, instance_id_for
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


@api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=range(1), rights=())
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, call: Call
) -> GetTelemetrySubscriptionsResponse:
    telemetry, peer = call.broker.telemetry, call.peer
    telemetry.use(call.broker.image.configs)
    instance_id = instance_id_for(request.client_instance_id)
    client = attributes_of(instance_id, call.client_id, peer.software, peer.host, peer.port)
    instance = telemetry.subscribe(instance_id, client, call.broker.clock.now_ms())
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED_CODECS),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=telemetry.size_bytes_max,
        # Totals, so that the newest push is complete even after a change of broker.
        delta_temporality=False,
        requested_metrics=list(instance.metrics),
    )
