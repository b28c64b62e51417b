"""Walk a log in memory with the compiled walker, the readable one, and the one in C."""

import ctypes
import time
from collections.abc import Callable
from pathlib import Path

import isal.isal_zlib

from bench import payloads
from bench.model import Sample
from tandemmq.store.format.batch import compiled_batch_writer
from tandemmq.store.format.host import Host
from tandemmq.store.format.walker import Walker, compiled_walker, python_walker

_SIZE = 96 << 20
_PYTHON_SHARE = 16  # pure Python walks so many times less
_ROWS = 65_536
_HOST = Host("127.0.0.1", 10911).packed


def measure(body: int, rounds: int, library: str) -> dict[str, list[Sample]]:
    """Gigabytes and million records a second of CPU time."""
    log, records = _make_log(body)
    share = len(log) // _PYTHON_SHARE
    ways: dict[str, Callable[[], int]] = {"compiled": lambda: _walk(compiled, log, len(log))}
    compiled = compiled_walker()
    if library:
        ways["C"] = _CWalker(Path(library), log, crc=True).walk
        ways["C, no CRC"] = _CWalker(Path(library), log, crc=False).walk
    ways["pure Python"] = lambda: _walk(python_walker(), log, share)
    ways["CRC of the whole"] = lambda: isal.isal_zlib.crc32(log) and len(log)
    samples: dict[str, list[Sample]] = {way: [] for way in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            begun = time.process_time()
            walked = way()
            used = time.process_time() - begun
            samples[name].append({"gb_s": walked / used / 1e9, "m_rec_s": records * walked / len(log) / used / 1e6})
    return samples


def _make_log(body: int) -> tuple[bytearray, int]:
    """A log full of records, and their number."""
    writer = compiled_batch_writer()
    blob = payloads.encoded_batch(1024, body)
    count, size = writer.measure(blob, len(payloads.TOPIC), 0)
    log = bytearray(_SIZE // size * size)
    for number, at in enumerate(range(0, len(log), size)):
        writer.write(
            blob,
            log,
            at,
            topic=payloads.TOPIC.encode(),
            queue_id=number % 4,
            queue_offset=number // 4 * count,
            physical_offset=at,
            sys_flag=0,
            born_timestamp=1,
            born_host=_HOST,
            store_timestamp=1 + number,
            store_host=_HOST,
            reconsume_times=0,
        )
    return log, len(log) // size * count


def _walk(walker: Walker, log: bytearray, end: int) -> int:
    at = 0
    while True:
        walk = walker.walk(log, at, end, 0, check_crc=True, limit=_ROWS)
        if not walk.count:
            return at
        at = walk.position


class _Row(ctypes.Structure):
    """As in walker.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("position", "queue_offset", "stored", "born", "tags_code")),
        *((name, ctypes.c_int32) for name in ("size", "queue_id", "sys_flag")),
        *((name, ctypes.c_uint32) for name in ("topic_hash", "unique_key_hash", "keys_hash")),
    )


class _CWalker:
    """load/walker.c over a buffer, with ISA-L's CRC of the isal package."""

    def __init__(self, library: Path, log: bytearray, *, crc: bool) -> None:
        self._walk = ctypes.CDLL(str(library)).tandem_walk
        self._walk.restype = ctypes.c_int64
        self._log = (ctypes.c_char * len(log)).from_buffer(log)
        self._rows = (_Row * _ROWS)()
        function = ctypes.CDLL(isal.isal_zlib.__file__).crc32_gzip_refl
        self._crc = ctypes.cast(function, ctypes.c_void_p) if crc else None

    def walk(self) -> int:
        """Walk it all; the bytes walked."""
        at, stopped = 0, ctypes.c_int64()
        end = ctypes.c_int64(len(self._log))
        while self._walk(
            self._log, ctypes.c_int64(at), end, ctypes.c_int64(0), self._crc, self._rows, ctypes.c_int64(_ROWS),
            ctypes.byref(stopped),
        ):  # fmt: skip
            at = stopped.value
        return at
