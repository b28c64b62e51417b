"""What a message of the journal says, decoded at once."""

from tandemmq.store.delivery.journal.journal_format import JournalRecord, decode_in_steps


def decode_record_body(body: bytes) -> JournalRecord:
    """Raises UnreadableJournal."""
    steps = decode_in_steps(body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            record: JournalRecord = end.value
            return record
