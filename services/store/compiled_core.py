"""The compiled core: whether it can be used, and the parts of it that a store uses.

The core takes plain calls, from the bytes of a request to a record in the log and the bytes of the answer. What it does
not take, and everything where it is not built, goes the Python way. See docs/ARCHITECTURE.md.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import Direct
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.hooked_broker import HookedBroker
from tandemmq.store.delivery.journal.journal_format import FactCore, FactReader
from tandemmq.store.delivery.receiving.handles import HandleCore
from tandemmq.store.fronts.held_answer import CoreSends, SendCore
from tandemmq.store.fronts.internal.gateway_answers import host
from tandemmq.store.fronts.internal.gateway_sends import LinkCore
from tandemmq.store.fronts.native.direct_delivery import DirectAcknowledge, DirectReceive
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.remoting.direct_send import FramesCore
from tandemmq.store.fronts.rocketmq5.consumer_core import ConsumerCore
from tandemmq.store.fronts.rocketmq5.direct_send import takes_normal
from tandemmq.store.log.parts import RecordRun
from tandemmq.store.log.segments.syncing import ThreadSyncs
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import CoreChoice

if TYPE_CHECKING:
    from tandemmq.store.fronts.compiled.held_calls import CompiledHeldCalls

_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("common/grpc_transport", "store")
"""Where its modules lie."""
_MODULES = (
    "common.grpc_transport.compiled.begun_calls",
    "common.grpc_transport.compiled.call_deadlines",
    "common.grpc_transport.compiled.gathered_request",
    "common.grpc_transport.compiled.head_scan",
    "common.grpc_transport.compiled.lane_heads",
    "common.grpc_transport.compiled.lane_slots",
    "common.grpc_transport.compiled.lane_call",
    "common.grpc_transport.compiled.lane",
    "common.grpc_transport.compiled.reactor",
    "store.format.compiled.addresses",
    "store.format.compiled.batch_kernel",
    "store.format.compiled.column_kernel",
    "store.format.compiled.index_kernel",
    "store.format.compiled.walk_kernel",
    "store.log.compiled.appender",
    "store.log.compiled.record_run",
    "store.log.compiled.sync_thread",
    "store.broker.compiled.plain_message",
    "store.broker.compiled.sender",
    "store.delivery.compiled.handle_codec",
    "store.delivery.compiled.fact_codec",
    "store.fronts.compiled.call_times",
    "store.fronts.compiled.send_way",
    "store.fronts.compiled.held_calls",
    "store.fronts.native.compiled.send_codec",
    "store.fronts.native.compiled.batch_codec",
    "store.fronts.native.compiled.consumer_codec",
    "store.fronts.native.compiled.consumer_ways",
    "store.fronts.remoting.compiled.send_frames",
    "store.fronts.remoting.compiled.frame_reads",
    "store.fronts.remoting.compiled.json_scan",
    "store.fronts.remoting.compiled.pull_frames",
    "store.fronts.internal.compiled.link_sends",
    "store.fronts.rocketmq5.compiled.send_request",
    "store.fronts.rocketmq5.compiled.send_message",
    "store.fronts.rocketmq5.compiled.passed_sends",
    "store.fronts.rocketmq5.compiled.ack_message",
    "store.fronts.rocketmq5.compiled.given_message",
)


class CoreNotUsable(TandemError):
    """The compiled core is wanted, and is not there or older than its source."""

    kind = Kind.INVALID


def core_problem() -> str:
    """Why the core cannot be used; empty if it can.

    Where its declarations are not installed, as in the image, nobody can have changed its source.
    """
    if not all(map(_is_built, _MODULES)):
        return "it is not built for this Python"
    try:
        from tandemmq.store.log.compiled.appender import source
    except ImportError as error:
        return f"it cannot be loaded: {error}"
    built, there = source(), _digest()
    return "" if there in ("", built) else f"it was built from other source ({built}) than is here ({there})"


def _is_built(module: str) -> bool:
    """Whether Python finds a module as machine code. Asked without an import: the source alone cannot be imported."""
    spec = find_spec(f"tandemmq.{module}")
    return spec is not None and not str(spec.origin).endswith(".py")


def _digest() -> str:
    """First 16 hexadecimal digits of the SHA-256 of its source, as setup.py takes it; empty without declarations."""
    summed = hashlib.sha256()
    found = sorted(path for room in _ROOMS for path in (_PACKAGE / room).glob("**/compiled/*.pxd"))
    for declared in found:
        for path in (declared, declared.with_suffix(".py")):
            summed.update(path.read_bytes() if path.exists() else b"")
    return summed.hexdigest()[:16] if found else ""


def check_core(choice: CoreChoice) -> None:
    """Raises CoreNotUsable where the core is wanted always and cannot be used."""
    if choice is CoreChoice.ALWAYS and (problem := core_problem()):
        raise CoreNotUsable(
            f"The compiled core cannot be used: {problem}.",
            remedy="Run make venv, or pip install, where there is a C compiler; or set compiledCore=auto.",
        )


def reading_core(choice: CoreChoice) -> RecordRun | None:
    """What reads the records of pulls; None where the core is not to be used, or not there."""
    if choice is CoreChoice.NEVER or core_problem():
        return None
    from tandemmq.store.log.compiled import record_run

    return record_run


def consumer_core(choice: CoreChoice) -> ConsumerCore | None:
    """What serves RocketMQ 5 consumers; None where the core is not to be used, or not there."""
    if choice is CoreChoice.NEVER or core_problem():
        return None
    from tandemmq.store.fronts.rocketmq5.compiled import ack_message
    from tandemmq.store.fronts.rocketmq5.compiled.given_message import CompiledGivenMessage

    return ConsumerCore(CompiledGivenMessage(), ack_message.read)


@dataclass(frozen=True, slots=True)
class CompiledCore:
    """What of the core a store uses; nothing where it is not to be used, or not there."""

    state: str
    """In words: `compiled`, or `python` and why."""
    send: SendCore | None = None
    batch: SendCore | None = None
    frames: FramesCore | None = None
    message: SendCore | None = None
    consumers: ConsumerCore | None = None
    """Of RocketMQ 5 clients."""
    link: LinkCore | None = None
    """Of gateways."""
    handles: HandleCore | None = None
    """The texts of receipt handles."""
    facts: FactCore | None = None
    """Facts of the journal."""
    fact_reader: FactReader | None = None
    """The same when they are read."""

    def taken(self) -> dict[str, int]:
        """Calls that it took so far, by their kind."""
        parts = {
            "Send": self.send,
            "SendBatch": self.batch,
            "SEND_MESSAGE_V2": self.frames,
            "SendMessage": self.message,
            "Link": self.link,
        }
        return {name: part.taken for name, part in parts.items() if part is not None}


def short_way(sends: CoreSends) -> Direct:
    """The compiled short way of a method that sends, where its requests are the core's."""
    from tandemmq.store.fronts.compiled.send_way import CompiledSendWay

    way = CompiledSendWay(sends, peer_host)
    sends.when_safe.core = way
    return way.answer


def held_calls(method: str, times: StoreMetrics) -> "CompiledHeldCalls":
    """What gives the good answers of a method that were held until the end of a turn."""
    from tandemmq.store.fronts.compiled.held_calls import CompiledHeldCalls

    return CompiledHeldCalls(method, times)


def consuming_ways(
    receives: DirectReceive, acknowledges: DirectAcknowledge, times: StoreMetrics
) -> tuple[Direct, Direct]:
    """The compiled short ways of Receive and Acknowledge, around those in Python."""
    from tandemmq.store.fronts.native.compiled.consumer_codec import CompiledReceived
    from tandemmq.store.fronts.native.compiled.consumer_ways import CompiledAcknowledgeWay, CompiledReceiveWay

    receives.use_core(held_calls("Receive", times), lambda otherwise: CompiledReceived(otherwise).answer)
    acknowledges.use_core(held_calls("Acknowledge", times))
    return CompiledReceiveWay(receives).answer, CompiledAcknowledgeWay(acknowledges).answer


def compiled_core(
    broker: Broker,
    soon: Callable[[Callable[[], None]], object],
    choice: CoreChoice,
    cluster: str,
    *,
    asks_who: bool = False,
) -> CompiledCore:
    """The core over a broker of a cluster. `soon` calls at the end of the turn of the event loop.

    `asks_who`: whether callers have to be recognized. Classic clients and the users of gateways are recognized by
    Python, message by message: the core does not take theirs.
    """
    if choice is CoreChoice.NEVER:
        return CompiledCore("python: compiledCore is never")
    if isinstance(broker, HookedBroker):
        return CompiledCore("python: there are hooks")
    if broker.store.commit_log.append_crc:
        return CompiledCore("python: enabledAppendPropCRC is true")
    if problem := core_problem():
        return CompiledCore(f"python: {problem}")
    from tandemmq.store.broker.compiled.sender import CompiledSender
    from tandemmq.store.delivery.compiled import fact_codec, handle_codec
    from tandemmq.store.fronts.internal.compiled.link_sends import CompiledLinkSends
    from tandemmq.store.fronts.native.compiled.batch_codec import CompiledBatchCodec
    from tandemmq.store.fronts.native.compiled.send_codec import CompiledSendCodec
    from tandemmq.store.fronts.remoting.compiled.send_frames import CompiledSendFrames
    from tandemmq.store.fronts.rocketmq5.compiled.send_message import CompiledSendMessage
    from tandemmq.store.log.compiled.appender import CompiledAppender
    from tandemmq.store.log.compiled.sync_thread import SyncThread

    if broker.store.commit_log.files.syncs_are_plain:
        with suppress(OSError):  # no thread is to be had: the store's pool has one
            broker.store.sync_by(ThreadSyncs(SyncThread()))
    appender = CompiledAppender(broker.store, broker.sender.store_host.packed, soon, broker.traffic.sent)
    sender = CompiledSender(broker.sender, appender)
    message = CompiledSendMessage(sender, broker.topics, takes_normal)
    consumers = consumer_core(choice)
    codec, frames = CompiledSendCodec(sender), CompiledSendFrames(sender, cluster)
    link = CompiledLinkSends(sender, lambda text: host(text).packed)
    batches = CompiledBatchCodec(sender)
    journal = fact_codec.encode_run, fact_codec
    if asks_who:
        return CompiledCore("compiled", codec, batches, None, message, consumers, None, handle_codec, *journal)
    return CompiledCore("compiled", codec, batches, frames, message, consumers, link, handle_codec, *journal)
