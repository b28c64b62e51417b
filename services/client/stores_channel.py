"""One channel over the stores of a broker: a call is made where it can be answered.

A call is repeated at another address where it certainly did nothing: the store says so, or was never reached; and where
it only reads. A send whose answer was lost is not, since it may be stored, nor is anything else that changes something.
Streams begin at the address that answered last, and end with their connection.
"""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from tandemmq.client.errors import ClientError, NotMaster, RequestFailed, StoreUnreachable, from_rpc
from tandemmq.client.places import Places

_NEVER_SENT = "failed to connect to all addresses"
"""How grpc begins what it says of a call that never left."""

READS = frozenset(
    {
        "Checksum", "Describe", "Examine", "FindMessages", "GetCluster", "GetConfiguration", "GetDamage",
        "GetDelayOffsets", "GetGroup", "GetHistory", "GetJob", "GetLog", "GetOffsets", "GetRequestModes", "GetRole",
        "GetTopic", "GetWaiting", "ListActions", "ListGroups", "ListJobs", "ListQueues", "ListTopics", "ListUsers",
        "Pull", "QueryMessage", "QueryOffsets", "Records", "Status", "TraceMessage", "ViewGroups", "ViewMessage",
        "ViewMessages", "ViewWaiting", "WhoAmI",
    }
)  # fmt: skip
"""Calls of our contracts, by name, that change nothing: asked twice is the same as asked once."""


class ManyStores:
    """The channels by address, and which is used."""

    def __init__(self, addresses: Sequence[str], dial: Callable[[str], Any]) -> None:
        self.places = Places(addresses)
        self._dial = dial
        self.channels: dict[str, Any] = {}

    def at(self, address: str) -> Any:
        """The channel to one of the stores."""
        if address not in self.channels:
            self.channels[address] = self._dial(address)
        return self.channels[address]

    def go_on(self, address: str, failed: ClientError, tried: set[str], *, reads: bool) -> bool:
        """Whether a call that has failed at an address is to be made at the present one."""
        if isinstance(failed, NotMaster) and failed.leader not in tried and self.places.lead_to(failed.leader):
            return True
        if not failed.retriable:
            return False
        self.places.leave(address, silent=isinstance(failed, StoreUnreachable))
        nothing_done = reads or isinstance(failed, RequestFailed) or failed.message.startswith(_NEVER_SENT)
        return nothing_done and self.places.pass_over(tried)

    def stream_ended(self, failed: ClientError) -> None:
        """A stream at the present address has failed: the next one begins where it may go better."""
        if isinstance(failed, NotMaster) and self.places.lead_to(failed.leader):
            return
        if failed.retriable:
            self.places.leave(self.places.current, silent=isinstance(failed, StoreUnreachable))

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        """See grpc.Channel; so the others."""
        return _StreamMethod(self, "unary_stream", arguments, options)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        """See grpc.Channel."""
        return _StreamMethod(self, "stream_unary", arguments, options)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        """See grpc.Channel."""
        return _StreamMethod(self, "stream_stream", arguments, options)


class _StreamMethod:
    """A method with a stream: made at the address that answered last."""

    def __init__(self, spread: ManyStores, kind: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._spread, self._kind, self._arguments, self._options = spread, kind, arguments, options
        self._made: dict[str, Any] = {}
        self.reads = str(arguments[0]).rpartition("/")[2] in READS

    def at(self, address: str) -> Any:
        """The method at one of the stores."""
        if address not in self._made:
            self._made[address] = getattr(self._spread.at(address), self._kind)(*self._arguments, **self._options)
        return self._made[address]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.at(self._spread.places.current)(*arguments, **options)


class _UnaryMethod(_StreamMethod):
    """A method with one request and one answer."""

    def __call__(self, request: Any, timeout: float | None = None, **options: Any) -> Any:
        tried: set[str] = set()
        while True:
            address = self._spread.places.current
            tried.add(address)
            try:
                return self.at(address)(request, timeout=timeout, **options)
            except grpc.RpcError as error:
                if not self._spread.go_on(address, from_rpc(error), tried, reads=self.reads):
                    raise


class _AioUnaryMethod(_StreamMethod):
    """The same for asyncio."""

    async def __call__(self, request: Any, timeout: float | None = None, **options: Any) -> Any:
        tried: set[str] = set()
        while True:
            address = self._spread.places.current
            tried.add(address)
            try:
                return await self.at(address)(request, timeout=timeout, **options)
            except grpc.aio.AioRpcError as error:
                if not self._spread.go_on(address, from_rpc(error), tried, reads=self.reads):
                    raise


class _Blocking(ManyStores, grpc.Channel):
    """For blocking calls."""

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        return _UnaryMethod(self, "unary_unary", arguments, options)

    def subscribe(
        self, callback: Callable[[grpc.ChannelConnectivity], None], try_to_connect: bool | None = None
    ) -> None:
        self.at(self.places.current).subscribe(callback, try_to_connect=try_to_connect)

    def unsubscribe(self, callback: Callable[[grpc.ChannelConnectivity], None]) -> None:
        for channel in self.channels.values():
            channel.unsubscribe(callback)

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.close()
        return None


class _Asyncio(ManyStores, grpc.aio.Channel):
    """For asyncio."""

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        return _AioUnaryMethod(self, "unary_unary", arguments, options)

    async def close(self, grace: float | None = None) -> None:
        for channel in self.channels.values():
            await channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state: grpc.ChannelConnectivity = self.at(self.places.current).get_state(try_to_connect)
        return state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self.at(self.places.current).wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self.at(self.places.current).channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.close()
        return None


def stores_channel(addresses: Sequence[str], dial: Callable[[str], grpc.Channel]) -> grpc.Channel:
    """One channel over several addresses, for blocking calls; `dial` opens the one to an address. Close it."""
    return _Blocking(addresses, dial)


def aio_stores_channel(addresses: Sequence[str], dial: Callable[[str], grpc.aio.Channel]) -> grpc.aio.Channel:
    """The same for asyncio."""
    return _Asyncio(addresses, dial)
