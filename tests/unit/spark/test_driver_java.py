"""The parts of PySpark that start Java and are not public: there in the PySpark we test with, refused when changed."""

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext, __version__, java_gateway

from tandemmq.spark.running.driver_java import UnknownPySpark, end_java, java_runs, start_java


def launches_otherwise(conf: Any = None) -> None:
    raise AssertionError("it must not be called")


def test_this_pyspark_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert not java_runs()
    monkeypatch.setattr(SparkContext, "_gateway", object())
    assert java_runs()


@pytest.mark.parametrize("name", ["_gateway", "_ensure_initialized"])
def test_a_pyspark_without_them_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delattr(SparkContext, name)
    with pytest.raises(UnknownPySpark, match=rf"PySpark {__version__} .* no SparkContext\.{name}.*") as caught:
        java_runs()
    assert "constraints.txt" in caught.value.remedy


def test_a_pyspark_that_launches_otherwise_is_refused_before_java_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_gateway, "launch_gateway", launches_otherwise)
    with pytest.raises(UnknownPySpark, match=r"launch_gateway\(conf, popen_kwargs\)"):
        start_java({}, None)


def test_java_without_a_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", object())
    with pytest.raises(UnknownPySpark, match="no process"):
        end_java()


def test_a_pyspark_that_makes_processes_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_gateway, "Popen", object())
    with pytest.raises(UnknownPySpark, match=r"java_gateway\.Popen"):
        start_java({}, None)
