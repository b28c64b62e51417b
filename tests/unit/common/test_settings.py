"""Settings: layers, origins, and errors that help."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents.properties_file import parse_properties
from tandemmq.common.settings.settings import (
    BadSetting,
    Origin,
    Settings,
    UnknownSetting,
    UnreadableSettings,
    camel_case,
    setting,
)


class Flush(Enum):
    ASYNC_FLUSH = "async"
    SYNC_FLUSH = "sync"


@dataclass(frozen=True, kw_only=True)
class Example(Settings):
    without_effect = {"namesrvAddr": "there is no name server"}

    flush_disk_type: Flush = setting(Flush.ASYNC_FLUSH, "When an append is acknowledged.")
    mapped_file_size: int = setting(1024, "Size of a file.", unit="bytes", low=16, high=4096)
    broker_ip1: str = setting("127.0.0.1", "Address of the broker.", name="brokerIP1")
    ratio: float = setting(0.75, "A share.", low=0, high=1)
    index_enable: bool = setting(True, "Whether keys are indexed.")
    store_path: Path = setting(Path("data"), "Where the files are.")
    limit: int | None = setting(None, "Unlimited when empty.", low=1)
    levels: tuple[str, ...] = setting(("1s", "5s"), "Delays.")
    even: int = setting(2, "An even number.", check=lambda value: "an even number" if value % 2 else None)

    def check(self) -> None:
        super().check()
        if self.limit is not None and self.limit > self.mapped_file_size:
            raise self.bad("limit", "at most mappedFileSize")


def load(text: str | None = None, tmp_path: Path | None = None, **layers: Any) -> Example:
    file = None
    if text is not None:
        assert tmp_path is not None
        file = tmp_path / "broker.conf"
        file.write_text(text)
    layers.setdefault("environment", {})
    return Example.load(file, **layers)


def test_defaults_need_no_source_at_all() -> None:
    settings = load()
    assert settings == Example()
    assert settings.origin("ratio") == Origin("default", "default")


def test_later_layers_win_and_are_remembered_as_origin(tmp_path: Path) -> None:
    settings = load(
        "mappedFileSize=64\nratio=0.5\nbrokerIP1 = 10.0.0.1\nindexEnable=no",
        tmp_path,
        profile={"mapped_file_size": 32, "store_path": Path("small")},
        profile_name="embedded",
        environment={"TANDEM_RATIO": "0.25", "TANDEM_INDEX_ENABLE": "yes", "HOME": "/root"},
        overrides={"index_enable": False, "even": None},
    )
    assert (settings.mapped_file_size, settings.ratio, settings.index_enable) == (64, 0.25, False)
    assert settings.broker_ip1 == "10.0.0.1"
    assert settings.origin("store_path") == Origin("profile", "profile embedded")
    assert settings.origin("mapped_file_size") == Origin("file", "broker.conf line 1")
    assert settings.origin("ratio") == Origin("environment", "TANDEM_RATIO")
    assert settings.origin("index_enable") == Origin("override", "option index_enable")
    assert settings.origin("even").layer == "default"


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("flushDiskType=sync_flush", "flush_disk_type", Flush.SYNC_FLUSH),
        ("flushDiskType=SYNC", "flush_disk_type", Flush.SYNC_FLUSH),
        ("mappedFileSize = 1_024 ", "mapped_file_size", 1024),
        ("ratio=1", "ratio", 1.0),
        ("storePath=/tmp/x", "store_path", Path("/tmp/x")),
        ("limit=", "limit", None),
        ("limit=7", "limit", 7),
        ("levels=1s, 2s ;3s", "levels", ("1s", "2s", "3s")),
    ],
)
def test_texts_become_typed_values(text: str, attribute: str, value: object, tmp_path: Path) -> None:
    assert getattr(load(text, tmp_path), attribute) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flushDiskType=never", "flushDiskType=never (broker.conf line 1): allowed is one of ASYNC_FLUSH, SYNC_FLUSH"),
        ("mappedFileSize=big", "mappedFileSize=big (broker.conf line 1): allowed is a whole number"),
        ("# size\nmappedFileSize=8", "mappedFileSize=8 (broker.conf line 2): allowed is int (bytes), 16 to 4096"),
        ("indexEnable=maybe", "indexEnable=maybe (broker.conf line 1): allowed is true or false"),
        ("limit=0", "limit=0 (broker.conf line 1): allowed is int or empty, at least 1"),
        ("limit=2000", "limit=2000 (broker.conf line 1): allowed is at most mappedFileSize"),
        ("even=3", "even=3 (broker.conf line 1): allowed is an even number"),
        ("storePath=", "storePath= (broker.conf line 1): allowed is a path"),
    ],
)
def test_bad_values_are_errors_that_name_key_value_allowed_and_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting) as caught:
        load(text, tmp_path)
    assert str(caught.value) == message


def test_unknown_key_of_the_file_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownSetting) as caught:
        load("flushDisktype=SYNC_FLUSH", tmp_path)
    assert caught.value.explain() == (
        "unknown setting flushDisktype (broker.conf line 1) (did you mean flushDiskType?)"
    )


def test_unknown_variable_names_the_nearest_and_foreign_variables_do_not_count() -> None:
    with pytest.raises(UnknownSetting, match="TANDEM_FLUSH_DISK_TYP ") as caught:
        load(environment={"TANDEM_FLUSH_DISK_TYP": "x", "FLUSH": "y"})
    assert caught.value.remedy == "did you mean TANDEM_FLUSH_DISK_TYPE?"
    assert load(environment={"TANDEM_TEST_ANY": "1", "TANDEM_ADDRESS": "host:1"}) == Example()


def test_names_without_effect_are_accepted_and_listed(tmp_path: Path) -> None:
    settings = load("namesrvAddr=a:9876", tmp_path, environment={"TANDEM_NAMESRV_ADDR": "b:9876"})
    assert settings.ignored == ("namesrvAddr", "TANDEM_NAMESRV_ADDR")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_unreadable_file_is_an_error_of_its_own(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnreadableSettings, match="broker.conf"):
        Example.load(file, environment={})


def test_description_carries_everything_a_page_needs() -> None:
    described = {entry.attribute: entry for entry in load(environment={"TANDEM_MAPPED_FILE_SIZE": "64"}).describe()}
    assert next(iter(described)) == "flush_disk_type"
    size = described["mapped_file_size"]
    assert (size.name, size.environment, size.type) == ("mappedFileSize", "TANDEM_MAPPED_FILE_SIZE", "int")
    assert (size.default, size.value, size.origin.place) == ("1024", "64", "TANDEM_MAPPED_FILE_SIZE")
    assert size.allowed == "int (bytes), 16 to 4096"
    assert described["flush_disk_type"].type == "ASYNC_FLUSH | SYNC_FLUSH"
    assert described["levels"].default == "1s,5s"
    assert all(entry.doc for entry in described.values())


def test_camel_case() -> None:
    assert camel_case("ha_send_heartbeat_interval") == "haSendHeartbeatInterval"


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1\n# c\n! d\n\n b : 2 \nc 3", [("a", "1", 1), ("b", "2", 5), ("c", "3", 6)]),
        ("a=1 \\\n   2\nb=\\\\\nc=x", [("a", "1 2", 1), ("b", "\\", 3), ("c", "x", 4)]),
        ("a\\ b=\\u00e9\\t.", [("a b", "\u00e9\t.", 1)]),
        ("empty=\nalone", [("empty", "", 1), ("alone", "", 2)]),
        ("url=http://h:1/?a=b", [("url", "http://h:1/?a=b", 1)]),
    ],
)
def test_properties_files_are_read_as_java_reads_them(text: str, entries: list[tuple[str, str, int]]) -> None:
    assert parse_properties(text) == entries
