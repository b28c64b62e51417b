"""Channels to a server: in plain text or with TLS, and with credentials that go along with every call."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeGuard

import grpc

from tandemmq.client.errors import UnusableFile
from tandemmq.client.places import addresses_of
from tandemmq.client.stores_channel import aio_stores_channel, stores_channel
from tandemmq.common.identity.credentials import authorization

KEEPALIVE_SECONDS = 10
"""A server from which nothing comes for so long is asked whether it is there, and given half as long to answer."""

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # messages may be as large as the server allows
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", KEEPALIVE_SECONDS * 1_000),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_SECONDS * 500),
    ("grpc.http2.ping_timeout_ms", KEEPALIVE_SECONDS * 500),  # a minute otherwise, whatever the line before says
    ("grpc.http2.max_pings_without_data", 0),  # also where a stream waits for long
    ("grpc.initial_reconnect_backoff_ms", 100),  # a store that comes back is found within seconds, not minutes
    ("grpc.max_reconnect_backoff_ms", 2_000),
]
"""Calls and streams without a deadline fail with StoreUnreachable where the server hangs, or its machine is gone."""

LASTING_OPTIONS = [*CHANNEL_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
"""For a channel that is to last: its connections are its own."""

File = Path | str
Metadatum = tuple[str, str | bytes]


def open_channel(
    address: str | Sequence[str],
    *,
    user: str | None = None,
    secret: str | None = None,
    tls_ca: File | None = None,
    tls_certificate: File | None = None,
    tls_key: File | None = None,
) -> grpc.Channel:
    """A channel for blocking calls; `StoreClient` says what the arguments mean and raise. Close it at the end."""
    own, tls = _own_metadata(user, secret), _tls(tls_ca, tls_certificate, tls_key)
    dial = partial(_dial, own=own, tls=tls)
    return dial(address) if is_one(address) else stores_channel(addresses_of(address), dial)


def _dial(address: str, own: Metadatum | None, tls: grpc.ChannelCredentials | None) -> grpc.Channel:
    if tls is None:
        opened = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
    else:
        opened = grpc.secure_channel(address, tls, options=CHANNEL_OPTIONS)
    return opened if own is None else _Identified(opened, own)


def open_aio_channel(
    address: str | Sequence[str],
    *,
    user: str | None = None,
    secret: str | None = None,
    tls_ca: File | None = None,
    tls_certificate: File | None = None,
    tls_key: File | None = None,
    options: Sequence[tuple[str, int]] = CHANNEL_OPTIONS,
) -> grpc.aio.Channel:
    """The same for asyncio; `options` of gRPC's."""
    own, tls = _own_metadata(user, secret), _tls(tls_ca, tls_certificate, tls_key)
    dial = partial(_dial_aio, own=own, tls=tls, options=options)
    return dial(address) if is_one(address) else aio_stores_channel(addresses_of(address), dial)


def _dial_aio(
    address: str, own: Metadatum | None, tls: grpc.ChannelCredentials | None, options: Sequence[tuple[str, int]]
) -> grpc.aio.Channel:
    if tls is None:
        opened = grpc.aio.insecure_channel(address, options=options)
    else:
        opened = grpc.aio.secure_channel(address, tls, options=options)
    return opened if own is None else _IdentifiedAio(opened, own)


def is_one(address: str | Sequence[str]) -> TypeGuard[str]:
    """Whether it is one address, and not several: in a sequence, or with commas between."""
    return isinstance(address, str) and "," not in address


def _tls(ca: File | None, certificate: File | None, key: File | None) -> grpc.ChannelCredentials | None:
    """None if nothing speaks for TLS. Raises UnusableFile, ValueError."""
    if (certificate is None) != (key is None):
        raise ValueError("tls_certificate and tls_key go together")
    if ca is None and certificate is None:
        return None
    return grpc.ssl_channel_credentials(_read(ca), _read(key), _read(certificate))


def _read(path: File | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror}") from error


def _own_metadata(user: str | None, secret: str | None) -> Metadatum | None:
    """Raises BadUserName, ValueError."""
    if (user is None) != (secret is None):
        raise ValueError("user and secret go together")
    return None if user is None or secret is None else authorization(user, secret)


class _Method:
    """A method of a channel whose every call carries metadata of ours.

    By hand, as grpc's interceptors put an object of theirs around each call.
    """

    def __init__(self, method: Any, own: Metadatum) -> None:
        self._method = method
        self._own = own

    def __call__(self, *arguments: Any, metadata: Any = None, **options: Any) -> Any:
        return self._method(*arguments, metadata=(self._own, *(metadata or ())), **options)

    def with_call(self, *arguments: Any, metadata: Any = None, **options: Any) -> Any:
        """See grpc.UnaryUnaryMultiCallable."""
        return self._method.with_call(*arguments, metadata=(self._own, *(metadata or ())), **options)

    def future(self, *arguments: Any, metadata: Any = None, **options: Any) -> Any:
        """See grpc.UnaryUnaryMultiCallable."""
        return self._method.future(*arguments, metadata=(self._own, *(metadata or ())), **options)


class _Methods:
    """The four kinds of methods, each with metadata of ours; over a channel of either kind."""

    def __init__(self, channel: Any, own: Metadatum) -> None:
        self._channel = channel
        self._own = own

    def unary_unary(self, *arguments: Any, **options: Any) -> Any:
        """See grpc.Channel; so the others."""
        return _Method(self._channel.unary_unary(*arguments, **options), self._own)

    def unary_stream(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self._channel.unary_stream(*arguments, **options), self._own)

    def stream_unary(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self._channel.stream_unary(*arguments, **options), self._own)

    def stream_stream(self, *arguments: Any, **options: Any) -> Any:
        return _Method(self._channel.stream_stream(*arguments, **options), self._own)


class _Identified(_Methods, grpc.Channel):
    """A channel that says with every call who calls."""

    def subscribe(
        self, callback: Callable[[grpc.ChannelConnectivity], None], try_to_connect: bool | None = None
    ) -> None:
        self._channel.subscribe(callback, try_to_connect=try_to_connect)

    def unsubscribe(self, callback: Callable[[grpc.ChannelConnectivity], None]) -> None:
        self._channel.unsubscribe(callback)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.close()
        return None


class _IdentifiedAio(_Methods, grpc.aio.Channel):
    """The same for asyncio."""

    async def close(self, grace: float | None = None) -> None:
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state: grpc.ChannelConnectivity = self._channel.get_state(try_to_connect)
        return state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.close()
        return None
