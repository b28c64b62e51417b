"""The compiled thread that makes files durable."""

import asyncio
import errno
import os
import select
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tandemmq.store.compiled_core import core_problem
from tandemmq.store.log.segments.syncing import ThreadSyncs

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")


def _thread() -> Any:
    from tandemmq.store.log.compiled.sync_thread import SyncThread

    return SyncThread()


async def _sync(syncs: ThreadSyncs, *descriptors: int) -> BaseException | None:
    told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    files: Any = [SimpleNamespace(fd=fd) for fd in descriptors]
    syncs.begin(files, told.set_result)
    return await told


async def test_it_syncs_one_group_after_the_other(tmp_path: Path) -> None:
    syncs = ThreadSyncs(_thread())
    with (tmp_path / "one").open("wb") as one, (tmp_path / "two").open("wb") as two:
        assert await _sync(syncs, one.fileno()) is None
        assert await _sync(syncs, one.fileno(), two.fileno()) is None
        assert await _sync(syncs) is None
    syncs.close()


async def test_it_says_why_a_file_cannot_be_synced_and_whether_the_next_can(tmp_path: Path) -> None:
    syncs, (reader, writer) = ThreadSyncs(_thread()), os.pipe()
    with (tmp_path / "one").open("wb") as file:
        for group in ((writer, file.fileno()), (file.fileno(), writer)):
            error = await _sync(syncs, *group)
            assert isinstance(error, OSError)
            assert error.errno == errno.EINVAL
        assert await _sync(syncs, file.fileno()) is None
    os.close(reader)
    os.close(writer)
    syncs.close()


def test_nothing_has_ended_before_it_was_begun_and_nothing_begins_after_the_end() -> None:
    thread = _thread()
    assert thread.ended() == -1
    thread.close()
    thread.close()
    assert thread.ended() == -1
    with pytest.raises(RuntimeError, match="ended"):
        thread.begin([])


async def test_an_end_in_the_middle_of_a_sync_tells_how_that_ended(tmp_path: Path) -> None:
    """Whoever waited for it would wait for ever; and it may have failed."""
    reader, writer = os.pipe()
    with (tmp_path / "one").open("wb") as file:
        for descriptor, code in ((file.fileno(), None), (writer, errno.EINVAL)):
            told: list[BaseException | None] = []
            syncs, files = ThreadSyncs(_thread()), list[Any]([SimpleNamespace(fd=descriptor)])
            syncs.begin(files, told.append)
            syncs.close()
            syncs.close()
            assert [getattr(error, "errno", None) for error in told] == [code]
    os.close(reader)
    os.close(writer)


def test_the_end_gives_what_nobody_has_asked_for_yet() -> None:
    reader, writer = os.pipe()
    thread = _thread()
    thread.begin([writer])
    assert select.select([thread.done], [], [], 60)[0]
    assert thread.close() == errno.EINVAL
    assert thread.close() == -1
    asked = _thread()
    asked.begin([writer])
    assert select.select([asked.done], [], [], 60)[0]
    assert asked.ended() == errno.EINVAL
    assert asked.close() == -1
    os.close(reader)
    os.close(writer)


def test_it_ends_with_what_it_is_at(tmp_path: Path) -> None:
    with (tmp_path / "one").open("wb") as file:
        thread = _thread()
        thread.begin([file.fileno()])
        with pytest.raises(RuntimeError, match="under way"):
            thread.begin([file.fileno()])
        thread.close()
        del thread
        _thread()  # nobody closes it
