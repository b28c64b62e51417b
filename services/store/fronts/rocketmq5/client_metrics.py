"""OtlpMetrics: the OpenTelemetry endpoint that some clients need to work at all (rule 10)."""

from tandemmq.store.fronts.rocketmq5.caller import Context

SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"


class OtlpMetrics:
    """Takes what clients measure, and drops it."""

    async def export(self, request: bytes, context: Context) -> bytes:
        """One export; the empty message is the answer of one that was taken whole."""
        return b""
