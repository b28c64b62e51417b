"""Compiled kernels on disk: used again, but not when a file of their package has changed, nor when numba has."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

numba_jit = pytest.importorskip("tandemmq.store.format.compiled.numba_jit")


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function whose module lies in a directory of its own, as does its cache; not one of the product's kernels."""
    monkeypatch.setattr(numba_jit, "KERNELS", [])
    path = tmp_path / "small.py"
    source = "def more(number):\n    return number + 1\n"
    path.write_text(source)
    module = ModuleType("small")
    exec(compile(source, path, "exec"), vars(module))
    return module.__dict__["more"]


def compiled_again(function: Callable[[int], int]) -> bool:
    """Whether a process that starts now would compile it."""
    kernel: Any = numba_jit.kernel(function)
    assert kernel(1) == 2
    return not kernel.stats.cache_hits


def test_the_cache_holds_until_a_file_of_the_package_changes(
    function: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled_again(function)
    assert not compiled_again(function)
    monkeypatch.setattr(numba_jit, "_STAMP", "of changed files")
    assert compiled_again(function)
    assert not compiled_again(function)


@pytest.mark.parametrize("lost", ["_cache", "_cache_file", "_source_stamp"])
def test_without_the_stamp_nothing_is_cached(
    function: Callable[[int], int], monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Old code would be taken for fresh."""

    njit = numba_jit.njit

    def changed(**options: Any) -> Any:
        def make(function: Callable[[int], int]) -> Any:
            made = njit(**options)(function)
            if options.get("cache"):
                owner = {"_cache": made, "_cache_file": made._cache, "_source_stamp": made._cache._cache_file}[lost]
                delattr(owner, lost)
            return made

        return make

    assert compiled_again(function)
    monkeypatch.setattr(numba_jit, "njit", changed)
    with pytest.warns(RuntimeWarning, match=r"numba .* has no _cache\._cache_file\._source_stamp.*constraints\.txt"):
        assert compiled_again(function)


def test_without_a_directory_to_write_to_nothing_is_cached(
    function: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    njit = numba_jit.njit

    def without_directory(*, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function 'more': no locator available")
        return njit(**options)

    monkeypatch.setattr(numba_jit, "njit", without_directory)
    assert compiled_again(function)
    assert len(numba_jit.KERNELS) == 1
