"""Which tests go to one worker together: those of a group, else those of a file.

What the tests of a file share (a store, a node, a browser) is then started once, and not in each worker.
"""

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """`--dist loadgroup`, where a file is the group of those tests that have none."""

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.split("::", 1)[0] if group == nodeid else group
