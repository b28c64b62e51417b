"""Finding the first file of a master that says nothing of itself."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.replicator.slave.slave_search import FirstFrame, search_begin

FILE_SIZE = 1000


class JavaMaster:
    """Answers as spec 1.4 and 1.5 say: offsets as asked, 0 for the last file, heartbeats where it has nothing."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.asked: list[int] = []

    async def ask(self, offset: int) -> FirstFrame:
        self.asked.append(offset)
        at = offset or self.end - self.end % FILE_SIZE
        return FirstFrame(at, self.begin <= at < self.end)


async def search(master: JavaMaster) -> int | None:
    return await search_begin(master.ask, FILE_SIZE)


async def test_an_empty_master_has_no_begin() -> None:
    master = JavaMaster(0, 0)
    assert await search(master) is None
    assert master.asked == [0]


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (0, 999), (0, 5500), (5000, 5500), (5000, 9000), (9000, 9000)])
async def test_the_begin_is_found(begin: int, end: int) -> None:
    assert await search(JavaMaster(begin, end)) == begin


async def test_a_thousand_files_take_a_dozen_questions() -> None:
    master = JavaMaster(700 * FILE_SIZE, 1_000_500)
    assert await search(master) == 700 * FILE_SIZE
    assert len(master.asked) <= 11


@given(files=st.integers(0, 200), rest=st.integers(0, FILE_SIZE), kept=st.integers(0, 200))
def test_whatever_is_kept_is_found(files: int, rest: int, kept: int) -> None:
    end = files * FILE_SIZE + rest
    begin = max(0, files - kept) * FILE_SIZE
    assert asyncio.run(search(JavaMaster(begin, end))) == (begin if end else None)
