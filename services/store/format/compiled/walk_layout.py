"""What a walk fills, as columns of longs. Its twin for kernels is walk_rows.pxd; walk_kernel.py compares both."""

# Columns of a row: one record. Texts are (position in the buffer << 16 | size), 0 if there is none.
PHYSICAL, SIZE, QUEUE_ID, QUEUE_OFFSET, SYS_FLAG, STORE_TIME, BORN_TIME, TAGS, UNIQUE, KEYS, GROUP, RUN = range(12)
ROW_WIDTH = 12
# Columns of a group: one topic and queue.
TOPIC_AT, TOPIC_SIZE = range(2)
GROUP_WIDTH = 8
ROW_AND_GROUP = ROW_WIDTH + GROUP_WIDTH
RUN_WIDTH = 9
"""Columns of a run: records of one group with consecutive queue offsets."""
# What comes first.
POSITION, STOP, ROWS, GROUPS, RUNS, FIRST_STORED, LAST_STORED, MAX_STORED, LAST_PHYSICAL = range(9)
RESULT_WIDTH = 9

TEXT_SIZE_BITS = 16


def groups_begin(room: int) -> int:
    """Where the groups begin, after the rows. ``room`` is one more than the most records that a walk can hold."""
    return RESULT_WIDTH + room * ROW_WIDTH


def runs_begin(room: int) -> int:
    """Where the runs begin."""
    return RESULT_WIDTH + room * ROW_AND_GROUP
