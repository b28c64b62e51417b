"""Finding messages: by offset id, by key, by unique key (RocketMQ: ``QueryMessageProcessor``)."""

from tandemmq.store.broker.errors import BadRequest, MessageNotFound
from tandemmq.store.broker.reading import has_expired, is_damaged, read_intact
from tandemmq.store.broker.rules import check_not_negative, check_topic_name
from tandemmq.store.format.java import index_hash, index_key
from tandemmq.store.format.message_id import IllegalMessageId, decode_offset_id
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.log.message_store import MessageStore

_END_OF_TIME = (1 << 63) - 1
_MOST_HITS = 65_536
"""So many entries of the index are looked at in one query, for keys that very many messages share with others."""


class Finder:
    """Looks messages up in a store."""

    def __init__(self, store: MessageStore, most_messages: int) -> None:
        """`most_messages`: no query answers more (``maxMsgsNumBatch``)."""
        self._store = store
        self._most_messages = most_messages

    def view(self, message_id: str) -> bytes:
        """The record that an offset id names. Raises as `at`, and BadRequest: it is no offset id."""
        try:
            _, offset = decode_offset_id(message_id)
        except IllegalMessageId as error:
            said = f"{error}"
            raise BadRequest(f"{said[:1].upper()}{said[1:]}.", remedy="An offset id has 32 or 56 hex digits.") from None
        return self.at(offset)

    def at(self, offset: int) -> bytes:
        """The record at a log offset.

        Raises:
            MessageNotFound: no record that consumers may see begins there, or it is damaged, which is noted.
        """
        record = read_intact(self._store, offset)
        if record is None and is_damaged(self._store, offset):
            raise MessageNotFound(
                f"The message at log offset {offset:,} is damaged.",
                remedy="A replica that has it whole is asked for it; see tandem_damaged_ranges.",
            )
        if record is None:
            raise MessageNotFound(
                f"No message begins at log offset {offset:,}.",
                remedy=f"The log has {self._store.commit_log.min_offset:,} to {self._store.confirm_offset:,}.",
            )
        if has_expired(self._store, decode_record(record, verify=False)):
            raise MessageNotFound(
                f"The message at log offset {offset:,} is older than its topic keeps messages.",
                remedy="The topic's attribute reserve.time says for how many hours that is.",
            )
        return record

    def by_key(
        self, topic: str, key: str, begin: int, end: int, most: int, *, unique: bool, before: int | None = None
    ) -> list[bytes]:
        """Records of a topic with a key (if `unique`: with that UNIQ_KEY), stored in [begin, end] ms, newest first.

        What the index says is compared with the records themselves, topic, key and store time: equal hashes of other
        keys and repeated entries are left out (trap T9), and messages at the edges of whole seconds are not (trap T8).
        `end` 0: no limit. `before`: what begins at or after that log offset need not be found.

        Raises:
            BadRequest: empty key, negative or reversed times, negative number.
        """
        check_topic_name(topic)
        for name, value in (("begin_timestamp", begin), ("end_timestamp", end), ("max_messages", most)):
            check_not_negative(name, value)
        if not key:
            raise BadRequest("Neither key nor unique_key is given.")
        end = end or _END_OF_TIME
        if begin > end:
            raise BadRequest(f"begin_timestamp {begin} is after end_timestamp {end}.")
        most = min(most, self._most_messages)
        found: list[bytes] = []
        seen: set[int] = set()
        for offset in self._store.query_index(topic, key, begin, end, before):
            if len(found) >= most or len(seen) >= _MOST_HITS:
                break
            if offset in seen:
                continue
            seen.add(offset)
            data = self._verified(offset, topic, key, begin, end, unique=unique)
            if data is not None:
                found.append(data)
        return found

    def newest(self, topic: str, unique_key: str, since: int, before: int | None = None) -> bytes | None:
        """The newest record of a topic with a UNIQ_KEY, stored at or after a time in ms, if there is one.

        `before`: see `by_key`.
        """
        return next(iter(self.by_key(topic, unique_key, since, 0, 1, unique=True, before=before)), None)

    def _verified(self, offset: int, topic: str, key: str, begin: int, end: int, *, unique: bool) -> bytes | None:
        """The record at an offset that the index gave, if it is what was asked for."""
        data = read_intact(self._store, offset)
        try:
            record = None if data is None else decode_record(data, verify=False)
        except CorruptRecord:
            record = None
        if record is None or data is None:
            self._suspect(offset, "no record begins there")
            return None
        key_hash = index_hash(index_key(topic, key))
        if all(index_hash(index_key(record.topic, one)) != key_hash for one in (record.unique_key or "", *record.keys)):
            self._suspect(offset, "its record does not have the key of an entry")
        fits = record.topic == topic and begin <= record.store_timestamp <= end and _has_key(record, key, unique)
        return data if fits and not has_expired(self._store, record) else None

    def _suspect(self, offset: int, reason: str) -> None:
        """Tell of an entry that names a place in the log, unless that has expired or is damaged."""
        if not is_damaged(self._store, offset) and not 0 <= offset < self._store.commit_log.min_offset:
            self._store.index_repairs.suspect(f"log offset {offset}", reason)


def _has_key(record: Record, key: str, unique: bool) -> bool:
    return record.unique_key == key or (not unique and key in record.keys)
