"""What each group has dealt with in each queue.

* `ledger`: all places of a store, and what is due next
* `due_item`: messages that are due together, as a number
* `progress`: one group in one queue: what is dealt with, what is given out, what comes again; a state machine
* `copied_messages`: which copies stand for messages that were dealt with
* `order`: which messages of an ordered group wait for which
* `order_lines`: those of all ordered groups
* `starts`: where a group begins in a topic
* `cursors`: commits and resets
* `durable_cursors`: which cursors may be told outside
* `kept_positions`: where services of the master stand in the broker's own queues, as facts
* `offset_files`: consumerOffset.json and delayOffset.json on disk
* `deletions`: groups and topics that were deleted
* `unconsumed`: files that are kept for groups
* `ways`: in which ways groups consume, and resets from outside
"""
