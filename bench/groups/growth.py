"""What a store costs as it grows: sends and start of a small one and of one with many files and queues."""

from functools import partial

from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.payloads import TOPIC
from bench.store import Store

SMALL, LARGE = "1 file, 8 queues", "100 files, 10,000 queues"
_CLIENTS = 4
_QUEUE_FILE = 4_000


def growth(context: Context) -> None:
    """Both stores run at once and take turns; before that each is started several times."""
    if not (context.wants("growth.start") or context.wants("growth.send")):
        return
    file_mb = 2 if context.quick else 8
    stores = {}
    for who, files, queues in ((SMALL, 1, 8), (LARGE, 100, 10_000)):
        directory = context.fresh(f"growth-{queues}")
        store = Store(
            directory,
            profile="embedded",
            mappedFileSizeCommitLog=file_mb << 20,
            mappedFileSizeConsumeQueue=_QUEUE_FILE,
        )
        context.say(f"  making a store of {who}")
        context.worker("grow", str(store.root), str(file_mb), str(files), str(queues), str(_QUEUE_FILE))
        stores[who] = store
    starts = [Contestant(who, partial(_start, store)) for who, store in stores.items()]
    context.run([Case("growth.start", "Start to the first answer, as the store grows", "seconds", starts)])
    if context.wants("growth.send"):
        _send(context, stores)
    for store in stores.values():
        store.server.discard()


def _start(store: Store) -> Sample:
    try:
        seconds = store.start(timeout=120)
        return {"seconds": seconds, "rss_mb": store.server.memory_mb()[0]}
    finally:
        store.server.stop()


def _send(context: Context, stores: dict[str, Store]) -> None:
    try:
        for store in stores.values():
            store.start(timeout=120)
        shape = context.shape(_CLIENTS)
        contestants = [Contestant(who, partial(store.send, shape, TOPIC, None)) for who, store in stores.items()]
        title = f"Single sends, {_CLIENTS} clients, as the store grows"
        context.run([Case("growth.send", title, "p99_us", contestants)])
    except Unavailable as error:
        context.miss(error)
