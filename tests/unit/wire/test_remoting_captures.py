"""Every frame that real RocketMQ programs exchanged is read, and written again with the same bytes."""

import base64
from collections import defaultdict
from typing import Any

import pytest

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.frames import RemotingFrameReader
from tests.golden import captured_frames

pytestmark = [pytest.mark.golden, pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])]


def raw_of(line: dict[str, Any]) -> bytes | None:
    return base64.b64decode(line["raw"]) if line.get("raw") else None


def test_every_captured_frame_has_its_bytes_again(version: str) -> None:
    seen = 0
    for line in captured_frames(version):
        raw = raw_of(line)
        if raw is None:
            continue
        (frame,) = RemotingFrameReader().receive(raw)
        command = codec.decode(frame)
        assert codec.encode(command) == raw
        assert (command.code, command.flag, command.opaque) == (line["code"], line["flag"], line["opaque"])
        assert (command.language, command.version) == (line["language"], line["version"])
        assert (command.remark, command.fields) == (line["remark"], line["extFields"])
        assert command.body == base64.b64decode(line["body"] or "")
        assert command.serialization.name == line["serialize"]
        seen += 1
    assert seen > 7000


def test_every_captured_code_has_a_name(version: str) -> None:
    requests, responses = set[int](), set[int]()
    for line in captured_frames(version):
        if "code" in line:
            (responses if line["flag"] & 1 else requests).add(line["code"])
    assert requests < set(RequestCode)
    assert responses < set(ResponseCode)


def test_a_connection_may_come_in_any_pieces(version: str) -> None:
    """All of a connection's bytes in one, and byte by byte, make the same frames."""
    streams = defaultdict[tuple[str, str], list[bytes]](list)
    for line in captured_frames(version, "consume_retry_dlq"):
        if raw := raw_of(line):
            streams[line["connection"], line["direction"]].append(raw)
    assert len(streams) > 3
    for frames in streams.values():
        stream = b"".join(frames)
        at_once = RemotingFrameReader().receive(stream)
        slowly = RemotingFrameReader()
        one_by_one = [frame for at in range(len(stream)) for frame in slowly.receive(stream[at : at + 1])]
        assert at_once == one_by_one
        assert len(at_once) == len(frames)
        assert slowly.incomplete == 0
