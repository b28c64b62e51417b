"""Pulls of messages with some tags: the compiled core finds what Python finds."""

from pathlib import Path
from random import Random

import pytest

from tandemmq.store.broker.pulled import PullStatus
from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.compiled_core import core_problem, reading_core
from tandemmq.store.format.java import java_hash
from tandemmq.store.format.record import decode_record, split_records
from tandemmq.store.log.reading.bulk import TaggedRun, TagLimits
from tandemmq.store.log.reading.named_records import NamedRecords
from tandemmq.store.settings import CoreChoice
from tests.unit.broker.broker_kit import Kit, broker

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

TAGS = ["a", "b", "Aa", "BB", "grün", "", None, "x" * 40]
"""Aa and BB have one hash."""
EXPRESSIONS = ["a", "a || b", "Aa", "BB", "Aa || BB", "grün", "x", "x" * 40 + " || a", "none"]
LIMITS = [
    {"max_messages": most, "max_bytes": size} for most, size in ((32, 1 << 20), (1, 1 << 20), (32, 3_000), (32, 1))
]


async def stored(kit: Kit, count: int, seed: int) -> list[str | None]:
    """Stores messages; their tags. Those of another queue lie between."""
    random = Random(seed)
    tags = [random.choice(TAGS) for _ in range(count)]
    for number, tag in enumerate(tags):
        properties = {"KEYS": f"k{number}"} if random.random() < 0.5 else {}
        if tag is not None:
            properties["TAGS"] = tag
        kit.send("t", bytes(random.randrange(2_000)), 0, **properties)
        if random.random() < 0.2:
            kit.send("t", b"other", 1, TAGS="a")
    await kit.dispatched()
    return tags


def walked(kit: Kit, expression: str, limits: dict[str, int], end: int) -> list[int]:
    """Offsets of all messages with the tags, pull after pull."""
    at, found = 0, []
    while at < end:
        answer = kit.pull("t", 0, at, expression, **limits)
        offsets = [decode_record(data).queue_offset for data in split_records(answer.records)]
        assert len(offsets) == answer.count <= limits["max_messages"]
        assert answer.status is (PullStatus.FOUND if offsets else PullStatus.NO_MATCHED_MESSAGE)
        assert answer.count <= 1 or len(answer.records) <= limits["max_bytes"]
        assert at < answer.next_offset
        assert all(at <= offset < answer.next_offset for offset in offsets)
        found += offsets
        at = answer.next_offset
    return found


@pytest.mark.parametrize("seed", [1, 2])
async def test_all_with_the_tags_and_no_others(tmp_path: Path, seed: int) -> None:
    """Over files of the log and of the queue."""
    async with broker(tmp_path, mapped_file_size_consume_queue=20 * 50) as kit:
        tags = await stored(kit, 300, seed)
        kit.store.use_core(reading_core(CoreChoice.ALWAYS))
        for expression in EXPRESSIONS:
            wanted = set(expression.split(" || "))
            expected = [number for number, tag in enumerate(tags) if tag in wanted]
            for limits in LIMITS:
                assert walked(kit, expression, limits, 300) == expected, (expression, limits)


async def test_answers_are_python_s(tmp_path: Path) -> None:
    """In one file."""
    async with broker(tmp_path, mapped_file_size_commit_log=1 << 20) as kit:
        await stored(kit, 200, 3)

        def answers() -> list[object]:
            return [
                kit.pull("t", 0, at, expression, **limits)
                for expression in EXPRESSIONS
                for at in (0, 7, 199)
                for limits in LIMITS
                if limits["max_messages"] > 1  # Python looks farther behind the last one
            ]

        kit.store.use_core(None)
        by_python = answers()
        kit.store.use_core(reading_core(CoreChoice.ALWAYS))
        assert answers() == by_python


async def test_the_core_reads_them_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(*_: object) -> bytes:
        raise AssertionError("Python reads")

    async with broker(tmp_path, mapped_file_size_commit_log=1 << 20) as kit:
        tags = await stored(kit, 100, 4)
        kit.store.use_core(reading_core(CoreChoice.ALWAYS))
        monkeypatch.setattr(NamedRecords, "copy", copied)
        assert kit.pull("t", tags="a || b || Aa").count == sum(tag in ("a", "b", "Aa") for tag in tags)
        with pytest.raises(AssertionError, match="Python reads"):
            kit.pull("t", tags="grün")


async def test_where_a_record_is_not_its_unit_s_python_finds_out(tmp_path: Path) -> None:
    async with broker(tmp_path, mapped_file_size_commit_log=1 << 20) as kit:
        for _ in range(20):
            kit.send("t", b"body", TAGS="a")
        await kit.dispatched()
        kit.store.use_core(reading_core(CoreChoice.ALWAYS))
        queue = kit.puller.find("t", 0)
        assert queue is not None
        wanted, limits = {java_hash("a"): b"a"}, TagLimits(2_048, 1_000, 1 << 20)
        whole = kit.store.read_tagged(queue, range(20), wanted, limits)
        assert isinstance(whole, TaggedRun)
        assert (whole.next_offset, whole.found) == (20, 20)
        path = queue.files[0]
        data = bytearray(path.read_bytes())
        data[10 * 20 + 11] ^= 1  # the size of a record
        with path.open("r+b") as file:
            file.write(data)
        assert kit.store.read_tagged(queue, range(20), wanted, limits) is None
        before = kit.store.read_tagged(queue, range(10), wanted, limits)
        assert before is not None
        assert before.found == 10


def test_a_tag_that_is_no_text_matches_nothing() -> None:
    """Half of a surrogate pair, as JSON may have it."""
    found = parse_tags("a || \ud800")
    assert found is not None
    assert (found.tags, found.by_code) == (frozenset({"a", "\ud800"}), {})
