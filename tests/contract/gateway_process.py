"""A gateway service as a process of its own, before stores."""

from pathlib import Path

from tests.contract.store_process import StoreProcess


class GatewayProcess(StoreProcess):
    """`python -m tandemmq.gateway`. Settings are given as attributes of GatewaySettings."""

    service = "gateway"

    def __init__(self, log: Path, brokers: dict[str, list[str]], **settings: object) -> None:
        """`log`: a path whose name its log gets; `brokers`: addresses by name."""
        listed = ";".join(f"{name}={','.join(addresses)}" for name, addresses in brokers.items())
        super().__init__(log, brokers=listed, **settings)

    def defaults(self) -> dict[str, object]:
        """See StoreProcess."""
        return {"max_message_size": 32 * 1024}
