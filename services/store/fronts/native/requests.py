"""Requests of the contract as the broker wants them: defaults filled in, limits applied, shorthands resolved."""

from functools import lru_cache

from tandemmq.store.broker.errors import BadRequest, IllegalMessage
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.send import ANY_QUEUE, NewBatch, NewMessage
from tandemmq.store.broker.tags import TagFilter, parse_tags
from tandemmq.store.format.host import ANY_HOST, Host, IllegalHost
from tandemmq.store.format.properties import KEY_SEPARATOR, KEYS, TAGS
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.v1 import message_pb2, store_pb2

DEFAULT_PULL_MESSAGES = 32
DEFAULT_PULL_BYTES = 256 << 10
MOST_WAIT_MS = 300_000


def new_message(message: message_pb2.Message, peer: Host) -> NewMessage:
    """A message to send. Raises IllegalMessage."""
    # Reading a field makes an object, a map costs most: each is touched once, and an empty map is not copied. A list of
    # keys, and a map by its names, cost less than what collections.abc makes of them.
    given = message.properties
    properties = {name: given[name] for name in given} if given else {}
    if tag := message.tag:
        _take_shorthand(properties, TAGS, "tag", tag)
    if keys := message.keys[:]:
        joined = KEY_SEPARATOR.join(keys)
        if "" in keys or joined.count(KEY_SEPARATOR) >= len(keys):
            raise IllegalMessage("A key is empty or has a space in it: spaces separate keys.")
        _take_shorthand(properties, KEYS, "keys", joined)
    born_host = message.born_host
    queue_id = message.queue_id
    return NewMessage(
        message.topic,
        _host(born_host) if born_host else peer,
        message.body,
        properties,
        queue_id if queue_id or message.HasField("queue_id") else ANY_QUEUE,
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.reconsume_times,
        repeatable=message.repeatable,
    )


def new_batch(batch: message_pb2.EncodedBatch, peer: Host) -> NewBatch:
    """An encoded batch to send. Raises IllegalMessage."""
    born_host = batch.born_host
    queue_id = batch.queue_id
    return NewBatch(
        batch.topic,
        _host(born_host) if born_host else peer,
        batch.messages,
        queue_id if queue_id or batch.HasField("queue_id") else ANY_QUEUE,
        batch.count,
        batch.sys_flag,
        batch.born_timestamp,
        batch.reconsume_times,
    )


def wanted(request: store_pb2.PullRequest, limits: PullLimits) -> Wanted:
    """What a pull asks for. Raises BadRequest."""
    if request.max_messages < 0 or request.max_bytes < 0 or not 0 <= request.wait_ms <= MOST_WAIT_MS:
        check_not_negative("max_messages", request.max_messages)
        check_not_negative("max_bytes", request.max_bytes)
        raise BadRequest(f"wait_ms is {request.wait_ms}: allowed is 0 to {MOST_WAIT_MS:,}.")
    return Wanted(
        topic=request.topic,
        queue_id=request.queue_id,
        offset=request.offset,
        max_messages=min(request.max_messages or DEFAULT_PULL_MESSAGES, limits.messages),
        max_bytes=min(request.max_bytes or DEFAULT_PULL_BYTES, limits.bytes),
        tag_filter=_tag_filter(request.tags) if request.tags else None,
        group=request.consumer_group,
    )


@lru_cache(maxsize=4096)
def peer_host(peer: str) -> Host:
    """The address of a connection as gRPC names it: `ipv4:1.2.3.4:5`, `ipv6:%5B::1%5D:5`; else ANY_HOST."""
    _, _, address = peer.partition(":")
    try:
        return Host.parse(address.replace("%5B", "[").replace("%5D", "]"))
    except IllegalHost:
        return ANY_HOST


@lru_cache(maxsize=1024)
def _tag_filter(expression: str) -> TagFilter | None:
    return parse_tags(expression)


@lru_cache(maxsize=4096)
def _host(text: str) -> Host:
    try:
        return Host.parse(text)
    except IllegalHost:
        raise IllegalMessage(f"born_host is no address with a port: {text!r}.") from None


def _take_shorthand(properties: dict[str, str], name: str, field: str, value: str) -> None:
    if name in properties:
        raise IllegalMessage(f"Both the field {field} and the property {name} are given: give one of them.")
    properties[name] = value
