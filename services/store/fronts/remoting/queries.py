"""Queries: messages by key, by unique key, and by their place in the log."""

from tandemmq.common.access.needs import Action, subscribe
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

UNIQUE = "_UNIQUE_KEY_QUERY"
_MOST = 64
_MOST_BYTES = 8 << 20


class Queries:
    """Answers them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.QUERY_MESSAGE: self.by_key, RequestCode.VIEW_MESSAGE_BY_ID: self.by_offset}

    def by_key(self, call: RemotingCall) -> Command:
        """QUERY_MESSAGE: records with a key, newest first."""
        fields = call.fields
        topic, unique = fields.text("topic"), bool(fields.flag_or(UNIQUE, False))
        call.demand(subscribe(topic))
        begin, end = max(fields.int64("beginTimestamp"), 0), max(fields.int64("endTimestamp"), 0)
        most = min(max(fields.int32("maxNum"), 0), _MOST)
        found = self._broker.by_key(topic, fields.text("key"), begin, end, most, unique=unique)
        store = self._broker.store
        said = {
            "indexLastUpdateTimestamp": decode_record(found[0], verify=False).store_timestamp if found else 0,
            "indexLastUpdatePhyoffset": store.dispatched_offset,
        }
        if not found:
            return call.reply(ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct", said)
        return call.ok(said, _joined(found))

    def by_offset(self, call: RemotingCall) -> Command:
        """VIEW_MESSAGE_BY_ID: the record at a place in the log, which the client has taken from an offset id."""
        offset = call.fields.int64("offset")
        try:
            data = self._broker.finder.at(offset)
        except MessageNotFound as error:
            words = f"can not find message by the offset, {offset}"
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, words) from error
        if call.principal is not None:
            call.demand(subscribe(decode_record(data, verify=False).topic, Action.VIEW))
        return call.ok(None, data)


def _joined(records: list[bytes]) -> bytes:
    """As many as an answer may have, at least one."""
    size, taken = 0, list[bytes]()
    for one in records:
        if taken and size + len(one) > _MOST_BYTES:
            break
        taken.append(one)
        size += len(one)
    return b"".join(taken)
