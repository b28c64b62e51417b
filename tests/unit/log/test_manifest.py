"""The manifest: read as it was written, believed only beside its own checkpoint, and never half."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.marks.manifest import NAME, Manifest, read_manifest, write_manifest

TIMES = st.tuples(*[st.integers(0, 1 << 60)] * 3)
BOUNDS = st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)).map(lambda bounds: (min(bounds), max(bounds)))
MANIFESTS = st.builds(
    Manifest,
    checkpoint=TIMES,
    position=st.integers(0, 1 << 60),
    queues=st.dictionaries(st.tuples(st.text("%RETYabc-_|", min_size=1), st.integers(0, 999)), BOUNDS, max_size=5),
    index=st.lists(st.tuples(st.text("0123456789", min_size=1), st.integers(1, 1 << 30)), max_size=3),
    rebuilding=st.booleans(),
    previous=TIMES,
)


@given(MANIFESTS)
def test_it_reads_as_it_was_written(manifest: Manifest) -> None:
    """Every field survives."""
    assert Manifest.decode(manifest.encode()) == manifest


@given(MANIFESTS, st.data())
def test_one_flipped_bit_makes_it_unreadable_and_never_something_else(manifest: Manifest, data: st.DataObject) -> None:
    """A manifest that lies about offsets would be worse than none."""
    text = bytearray(manifest.encode())
    text[data.draw(st.integers(0, len(text) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    with contextlib.suppress(ValueError):
        assert Manifest.decode(bytes(text)) == manifest


def test_it_is_believed_beside_its_checkpoint_and_the_one_before() -> None:
    """A crash between writing the two files leaves the older checkpoint: still nobody else wrote one."""
    manifest = Manifest((5, 5, 5), 100, previous=(3, 3, 3))
    assert manifest.belongs_to((5, 5, 5))
    assert manifest.belongs_to((3, 3, 3))
    assert not manifest.belongs_to((4, 4, 4))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 9}', b"\0" * 100])
def test_an_unreadable_one_counts_as_none(tmp_path: Path, content: bytes) -> None:
    """It costs a look at the whole log, and nothing else."""
    (tmp_path / NAME).write_bytes(content)
    assert read_manifest(tmp_path) is None


def test_it_is_replaced_whole(tmp_path: Path) -> None:
    """No temporary file stays."""
    for position in (1, 2):
        write_manifest(tmp_path, Manifest((1, 1, 1), position), LocalDisk())
        found = read_manifest(tmp_path)
        assert found is not None
        assert found.position == position
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
