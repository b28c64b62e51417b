"""The report of an audit as an HTML page: complete, of itself, and safe whatever the log holds."""

import re
import struct
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tandemmq.spark.auditing.audit_findings import FindingPlace
from tandemmq.spark.auditing.audit_job import AuditRequest, audit
from tandemmq.spark.auditing.audit_page import check_page, page, write_page
from tandemmq.spark.auditing.audit_report import AuditReport, QueueAudit, RangeAudit
from tandemmq.spark.auditing.audit_statistics import WIDTHS, Statistics
from tandemmq.spark.reading.walking import Damage
from tandemmq.spark.running.runner import InProcessRunner
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import encode_record
from tests.golden import golden_store

pytest.importorskip("matplotlib", reason="matplotlib is not installed: the extra `spark`")

HOST = Host("127.0.0.1", 10911)


class Page(HTMLParser):
    """What a page has, and what it asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.asked: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.asked += [
            value or "" for name, value in attrs if name in ("src", "href", "srcset", "xlink:href", "action")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def check(text: str) -> Page:
    """It is one file: no scripts, nothing that a browser would load."""
    found = Page(text)
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(found.tags)
    assert all(one.startswith("#") for one in found.asked), found.asked
    assert not re.findall(r"url\((?!#|\"#|&quot;#)[^)]*\)|@import", text)
    return found


def look(root: Path) -> AuditReport:
    return audit(AuditRequest(root, range_size=1 << 20), InProcessRunner())


@pytest.mark.slow
@pytest.mark.golden
def test_a_sound_store(tmp_path: Path) -> None:
    write_page(look(golden_store("clean") / "store"), tmp_path / "report.html")
    found = check((tmp_path / "report.html").read_text())
    assert found.tags.count("svg") == 4
    assert "No faults." in found.text
    assert "7,064" in found.text


@pytest.mark.golden
def test_a_store_with_faults() -> None:
    found = check(page(look(golden_store("torn") / "body-flip" / "store-after-java-recovery")))
    for text in ("missing queue units", "trap T11", "14,188,598 to 14,194,672", "GeoPing", "2,414"):
        assert text in found.text


def test_a_topic_cannot_write_into_the_page(tmp_path: Path) -> None:
    """No checksum covers a topic: anything may stand there, also what browsers and matplotlib take for markup."""
    topics = ["<script>alert(1)</script>", "$\\frac{1}{", "_hidden", "\"'&amp;", "订单", "bad\n\0."]
    log, at = b"", 0
    for number in range(50):
        message = Message(topics[number % 6], 0, b"x", b"", born_host=HOST, store_host=HOST)
        log += encode_record(message, number // 6, at, 1_700_000_000_000 + 1_000 * number)
        at = len(log)
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(64 << 10, b"\0"))
    found = check(page(look(tmp_path)))
    for topic in topics:
        assert topic in found.text
    assert "bad\\n" in found.text


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(1 << 16))
    found = check(page(look(tmp_path)))
    assert "No faults." in found.text
    assert found.tags.count("svg") == 1


def test_times_that_cannot_be(tmp_path: Path) -> None:
    """No checksum covers store times: one that is far off does not squeeze the others into nothing."""
    log = b""
    for number in range(2_000):
        message = Message("t", 0, b"x", b"", born_host=HOST, store_host=HOST)
        record = bytearray(encode_record(message, number, len(log), 1_700_000_000_000 + 1_000 * number))
        if number in (5, 900):
            struct.pack_into(">q", record, 56, (1 << 62) if number == 5 else -(1 << 60))
        log += record
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(1 << 20, b"\0"))
    report = look(tmp_path)
    assert report.records == 2_000
    check(page(report))


@pytest.mark.slow
def test_a_store_with_more_queues_than_a_page_takes() -> None:
    report = AuditReport(Path("store"), end=1 << 40, file_size=1 << 30, files=[n << 30 for n in range(1024)], records=9)
    report.queues = [QueueAudit(f"topic-{number:05d}", 0, 1, 0, 1) for number in range(3_000)]
    report.queues[2_999].counts = {"unit-missing": 3}
    report.findings.add("unit-missing", FindingPlace("topic-02999", 0, 7, 1234, count=3))
    report.damage = [Damage(1 << 39, (1 << 39) + 10, "rot", "a record fails its checksum")]
    report.ranges = [RangeAudit(0, 1 << 30, 9, 3, 0)]
    report.statistics = Statistics(
        WIDTHS[0], {f"topic-{number:05d}": {1_700_000_000 + number: (1, 300)} for number in range(3_000)}, {32: 3_000},
        1_700_000_000_000, 1_700_003_000_000,
    )  # fmt: skip
    text = page(report)
    found = check(text)
    assert len(text) < 1 << 20
    assert "2,600 further queues are left out" in found.text
    assert "2,993 others" in found.text
    assert "topic-02999" in found.text  # the one with faults comes first


def test_where_the_page_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_page(tmp_path / "none" / "report.html")
    check_page(tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
