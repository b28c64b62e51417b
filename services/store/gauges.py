"""What is read off a running store: for each scrape of the metrics, and once for the log when it is open."""

from tandemmq.store.audit_file import AuditFile
from tandemmq.store.broker.broker import Broker
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.missing_files import MISSING
from tandemmq.store.metrics import Gauges


def read_gauges(broker: Broker, audit: AuditFile) -> Gauges:
    """What the metrics show of the store; called on the metrics thread, reads only."""
    store = broker.store
    begin, end, flushed = store.commit_log.min_offset, store.commit_log.max_offset, store.flushed_offset
    damage, disk = store.damage, LocalDisk().usage(store.config.store_path_root_dir)
    mastership, transfer = store.replica.mastership, broker.acknowledgement.transfer
    return Gauges(
        flush_behind=max(end - flushed, 0),
        dispatch_behind=max(end - store.dispatched_offset, 0),
        disk_used=disk.used,
        disk_free=disk.free,
        disk_limit=store.config.disk_space_warning_level_ratio / 100,
        oldest_timestamp=_store_time(store.read_record(begin)),
        topics=sum(1 for _ in broker.topics.all()),
        writable=store.writable,
        damaged_ranges=len(damage),
        damaged_bytes=sum(known.end - known.begin for known in damage),
        missing_bytes=sum(known.end - known.begin for known in damage if known.kind == MISSING),
        log_begin=begin,
        log_end=end,
        long_polls=len(broker.polls),
        role=mastership.role.value,
        epoch=mastership.epoch,
        linked=transfer.linked,
        in_sync=transfer.in_sync,
        waiting_for_replicas=len(transfer),
        duplicates=window.recognized if (window := broker.sender.duplicates) is not None else 0,
        audit=audit.read(),
        audit_unusable=bool(audit.problem),
    )


def recovered(store: MessageStore) -> dict[str, object]:
    """What recovery found, for the log."""
    report = store.recovery
    return {
        "log_begin": store.commit_log.min_offset,
        "log_end": store.commit_log.max_offset,
        "records_recovered": report.records,
        "recovery_seconds": report.seconds,
        "cut_bytes": report.cut_bytes,
        "damaged_ranges": len(store.damage),
        "rebuilding": store.rebuilding,
    }


def _store_time(record: bytes | None) -> int | None:
    try:
        return None if record is None else decode_record(record, verify=False).store_timestamp
    except CorruptRecord:
        return None
