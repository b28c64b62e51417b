"""What an audit can find, each kind with a name for programs and words for people.

A *fault* is something that readers of the store run into. A *note* is not: bytes that brokers leave behind and never
read again, RocketMQ's as well as ours. Traps are RocketMQ's own ways of getting there; docs/known-faults.md tells them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding. ``of``: ``log``, ``queue``, ``index`` or ``store``; ``unit``: what is counted."""

    name: str
    of: str
    fault: bool
    title: str
    unit: str
    meaning: str
    trap: str = ""


_REBUILD = "`tandem data rebuild` makes them anew from the log"

KINDS: dict[str, FindingKind] = {
    kind.name: kind
    for kind in (
        # -- the log
        FindingKind("rot", "log", True, "damaged stretches of the log", "stretch",
             "Bytes that are no valid record, with valid records after them. Messages in there are lost here; a "
             "replica or a copy may still have them."),
        FindingKind("missing", "log", True, "missing log files", "stretch",
             "A file between others is not there: every message in it is gone. RocketMQ starts all the same and does "
             "not say so."),
        FindingKind("torn", "log", True, "torn end of the log", "stretch",
             "Bytes after the last record that are no record: a write that was cut short, or a tail that RocketMQ cut "
             "off without zeroing it. A start of ours cuts it off and keeps it aside.", "T1"),
        FindingKind("offset-gap", "log", True, "gaps in queue offsets of the log", "message",
             "The log goes from one queue offset to a later one: the messages between were never in this log, or "
             "their records are damaged."),
        FindingKind("offset-twice", "log", True, "queue offsets given twice", "message",
             "Several records of one queue have the same queue offset. The queue can hold only the first of them: the "
             "others are not reachable by offset.", "T1"),
        FindingKind("offset-impossible", "log", True, "queue offsets that cannot be", "message",
             "A record's queue offset is negative, or larger than the log has room for: no checksum covers it."),
        FindingKind("name-impossible", "log", True, "queues that cannot be", "message",
             "A record's topic or queue id cannot name a directory: no checksum covers them."),
        FindingKind("time-back", "log", False, "store times that go back", "message",
             "The clock was set back between two records. Searches by time that trust the order may miss messages.",
             "T21"),
        # -- consume queues
        FindingKind("unit-missing", "queue", True, "missing queue units", "unit",
             f"The log has a message, its consume queue has nothing in its place: consumers never see it; {_REBUILD}. "
             "RocketMQ never rebuilds one queue while others are whole.", "T11"),
        FindingKind("unit-blank", "queue", True, "blanks where messages are", "unit",
             "A fill unit (0, 7FFFFFFF, 0) stands where the log has a message: RocketMQ makes them when it begins a "
             f"queue in its middle, and consumers cannot read the messages; {_REBUILD}.", "T5"),
        FindingKind("unit-wrong", "queue", True, "wrong queue units", "unit",
             "A unit does not say where its message is, how long it is, or what its tag is: consumers get an error, "
             f"another message, or miss it by its tag; {_REBUILD}.", "T19"),
        FindingKind("unit-extra", "queue", True, "queue units without a message", "unit",
             f"A unit names a place in the log where no message with this queue offset is; {_REBUILD}.", "T6"),
        FindingKind("unit-behind-end", "queue", True, "queue units after the end of the log", "unit",
             "A unit names a place after the last record: left over from a log that was cut shorter, to come alive "
             "again when the log grows over it.", "T1"),
        FindingKind("queue-file", "queue", True, "odd files among consume queues", "file",
             "A file whose length is not that of the others, or whose name is no place in a queue; brokers refuse to "
             "start on it, or leave it out."),
        FindingKind("unit-damaged", "queue", False, "queue units of damaged records", "unit",
             "A unit names a place inside a damaged stretch of the log: its message was there once."),
        FindingKind("unit-expired", "queue", False, "queue units of expired records", "unit",
             "Units whose log file was deleted on expiry. They stay until all of their own file has expired; nobody "
             "reads them."),
        FindingKind("unit-prefill", "queue", False, "fill units before the first message", "unit",
             "Blanks at the front of a queue that begins in the middle of a file. Right where they are; RocketMQ "
             "takes them for messages after a restart.", "T5"),
        # -- index
        FindingKind("entry-missing", "index", True, "missing index entries", "entry",
             f"A key of a message is not in the index: searching for it does not find the message; {_REBUILD}. "
             "RocketMQ drops its newest index file after a crash and indexes only what it scans anew.", "T7"),
        FindingKind("entry-wrong", "index", True, "wrong index entries", "entry",
             f"An entry of a record has a hash that none of its keys has: the key is not found; {_REBUILD}."),
        FindingKind("entry-time", "index", True, "index entries with a wrong time", "entry",
             f"An entry's time is not that of its record, so searches with a time range may miss it; {_REBUILD}."),
        FindingKind("entry-twice", "index", True, "index entries that are there twice", "entry",
             "A key of a record is in the index more often than in the record: RocketMQ indexes records anew at the "
             "place where it had stopped. Searches give the message twice.", "T9"),
        FindingKind("entry-extra", "index", True, "index entries without a message", "entry",
             f"An entry names a place in the log where no record with keys begins; {_REBUILD}.", "T9"),
        FindingKind("entry-behind-end", "index", True, "index entries after the end of the log", "entry",
             "An entry names a place after the last record: left over from a log that was cut shorter.", "T1"),
        FindingKind("entry-unreachable", "index", True, "index entries that no chain leads to", "entry",
             f"An entry is there, but its slot's chain does not come to it, so no search does; {_REBUILD}."),
        FindingKind("entry-impossible", "index", True, "index entries that cannot be", "entry",
             f"An entry is all zero, has a negative field, or a predecessor that comes after it; {_REBUILD}."),
        FindingKind("entry-order", "index", True, "index entries out of the order of the log", "entry",
             "An entry belongs to an earlier record than the one before it.", "T9"),
        FindingKind("index-header", "index", True, "wrong index headers", "file",
             "A header's counts or ends are not those of its entries; searches by time trust them."),
        FindingKind("index-file", "index", True, "odd files in the index", "file",
             "A file whose length is not that of the others, or that cannot be read as an index file."),
        FindingKind("entry-damaged", "index", False, "index entries of damaged records", "entry",
             "An entry names a place inside a damaged stretch of the log: its message was there once."),
        FindingKind("entry-expired", "index", False, "index entries of expired records", "entry",
             "Entries whose log file was deleted on expiry. They stay until all of their own file has expired; "
             "queries leave them out."),
        # -- what the store itself says
        FindingKind("not-closed", "store", False, "not closed cleanly", "store",
             "The broker that had this directory last was killed, or still runs. What is missing at the very end of "
             "queues and index its next start adds."),
        FindingKind("damage-unknown", "store", False, "damage the store has not noted", "stretch",
             "The store keeps a list of damaged stretches that it reads around (tandem.damage); these are not in it. "
             "It notes them when it comes across them."),
        FindingKind("damage-gone", "store", False, "noted damage that is not there", "stretch",
             "The store's list of damaged stretches (tandem.damage) names one that reads well."),
    )
}  # fmt: skip
"""All kinds, in the order in which reports tell them."""
