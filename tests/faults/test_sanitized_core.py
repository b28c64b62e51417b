"""The address sanitizer sees what the compiled core does: kernels pass, and a write outside of an object does not."""

from pathlib import Path

import pytest

from tests.faults import sanitized_core

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

_OUTSIDE = """
from array import array
from tandemmq.store.format.compiled import batch_kernel
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.batch import encode_client_batch

def test_a_batch_is_laid_out_in_too_little_room():
    blob, room = encode_client_batch([(0, bytes(1000), b"")]), bytearray(64)
    source, kept = address_of(blob)
    target, too = address_of(room)
    batch_kernel.write(source, len(blob), target, bytes(100), 88, 0, 0, False, array("q", [0]))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with such a core."""
    try:
        return sanitized_core.build(tmp_path_factory.mktemp("sanitized"))
    except sanitized_core.NoSanitizer as problem:
        pytest.skip(str(problem))


def test_kernels_stay_within_their_objects(source: Path) -> None:
    """All of the core: `make soak ARGS="--asan"`."""
    kernels = tuple(test for test in sanitized_core.TESTS if test.startswith("tests/unit/format/"))
    done = sanitized_core.run(source, kernels, {})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]


def test_a_write_outside_would_be_seen(source: Path) -> None:
    (source / "tests" / "test_outside.py").write_text(_OUTSIDE)
    done = sanitized_core.run(source, ("tests/test_outside.py",), {})
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr + done.stdout
