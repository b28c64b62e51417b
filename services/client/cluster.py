"""Cluster: one store, or the several of a broker of which one is master; calls go to whoever can answer them."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

import grpc

from tandemmq.client.channels import LASTING_OPTIONS, File, open_aio_channel
from tandemmq.client.errors import NotMaster, StoreUnreachable, from_rpc
from tandemmq.client.places import Places, addresses_of
from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub

if TYPE_CHECKING:
    from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryAsyncStub
    from tandemmq.store.v1.store_pb2_grpc import StoreAsyncStub

log = logging.getLogger("tandemmq.client")

CALL_SECONDS = 10.0
"""How long one try may take, beside the time for which it is asked to wait."""

PAUSES = 0.05, 2.0
"""Seconds between tries: the first time, and at most."""


class Access(TypedDict, total=False):
    """Who calls, and over what: `StoreClient` says what each means."""

    user: str | None
    secret: str | None
    tls_ca: File | None
    tls_certificate: File | None
    tls_key: File | None


class Stubs(NamedTuple):
    """The contracts of one store's client port."""

    store: "StoreAsyncStub"
    delivery: "DeliveryAsyncStub"


Got = TypeVar("Got")


class Cluster:
    """Connections to the stores of one broker, for one event loop. Close it."""

    def __init__(self, addresses: str | Sequence[str], *, timers: Timers | None = None, **access: Any) -> None:
        """`access`: see `Access`. Nothing is sent before the first call. Raises ValueError, TypeError."""
        if unknown := access.keys() - Access.__annotations__.keys():
            raise TypeError(f"there is no argument {', '.join(sorted(unknown))}")
        self._places = Places(addresses_of(addresses))
        self._access = access
        self.timers = timers or LoopTimers()
        """By which all wait that call it."""
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._stubs: dict[str, Stubs] = {}
        self.on_led: Callable[[], None] | None = None
        """Called when a store has told who is master: `addresses` may have one more."""

    @property
    def current(self) -> str:
        """The address that answered last, or is tried next."""
        return self._places.current

    @property
    def addresses(self) -> tuple[str, ...]:
        """Those that were given, and the one that a store has told."""
        return self._places.all

    def stubs(self, address: str) -> Stubs:
        """The contracts at an address."""
        if address not in self._stubs:
            channel = self._channels[address] = open_aio_channel(address, options=LASTING_OPTIONS, **self._access)
            self._stubs[address] = Stubs(StoreStub(channel), DeliveryStub(channel))
        return self._stubs[address]

    async def call(
        self,
        which: Callable[[Stubs], Callable[..., Any]],
        request: Any,
        answer_type: type[Got],
        *,
        keep_trying: float,
        wait: float = 0.0,
    ) -> Got:
        """The answer to a request, of whichever store gives one; tries again for `keep_trying` seconds.

        A store that is no master says who is, and is believed at once. `wait`: seconds for which the store is asked to
        wait itself. Raises RequestFailed, StoreUnreachable.
        """
        give_up = self.timers.time() + keep_trying
        attempt, backoff = 0, Backoff(*PAUSES)
        pause = backoff.pause()
        led: set[str] = set()
        while True:
            address = self.current
            try:
                answer = await which(self.stubs(address))(request, timeout=CALL_SECONDS + wait)
            except grpc.aio.AioRpcError as error:
                failed = from_rpc(error)
            else:
                assert isinstance(answer, answer_type)
                return answer
            if isinstance(failed, NotMaster) and failed.leader not in led and self._places.lead_to(failed.leader):
                led.add(failed.leader)
                if self.on_led is not None:
                    self.on_led()
                continue
            if not failed.retriable:
                raise failed from None
            attempt += 1
            self._places.leave(address, silent=isinstance(failed, StoreUnreachable))
            if attempt % len(self.addresses) == 0:  # all of them were tried
                pause = backoff.pause()
            if self.timers.time() + pause > give_up:
                raise failed from None
            log.debug("%s: %s; trying again at %s", address, failed, self.current)
            led.clear()
            await self.timers.sleep(pause)

    async def close(self) -> None:
        """End the connections."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()
        self._stubs.clear()
