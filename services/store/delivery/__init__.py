"""Delivery: who gets which message, when, and how often.

The store keeps messages; delivery is what happens to them until somebody has dealt with them. What must survive is a
message of the commit log (`facts`); everything else here is made again from it.

* `port`: what fronts ask of delivery, as calls, and what they get
* `errors`: what delivery refuses
* `facts`: what is remembered of a group's progress, as values
* `progress`: one group in one queue: what is dealt with, what is given out, what comes again; a state machine
* `groups`: consumer groups and their settings, as a table
* `retry_policy`: how long a group waits between deliveries
* `delivery`: all parts as one thing, which fronts call
* `hooked_delivery`: the same with hooks around receives and acknowledgements
* `lifecycle`: when delivery works: on a master whose journal is read
* `opening`: making the state ready where messages are to be given out
* `follower`: reading the journal, at a start and on a slave
* `base`: which records of the journal are still needed
* `telling`: a place with many entries, told whole in many turns
* `images`: what consumerOffset.json and delayOffset.json say, as images of the journal
* `durable_cursors`: which cursors may be told outside
* `offset_files`: those files on disk
* `ledger`: all places of a store, and what is due next
* `journal`: facts on their way into the commit log
* `journal_format`: facts as bytes
* `copies`: copies that the broker makes of messages itself
* `transactions`: half messages, how they end, and who is asked when they do not
* `clock`: the time by which messages are due again
* `recalls`: taking back messages that wait for their time
* `sessions`: the clients that are there, and what may be asked of them
* `member_questions`: what an operator asks of one of them
* `handles`: receipt handles as text
* `compiled/`: their compiled twin
* `waiting`: receives that wait for a message, and what wakes them
* `order`: which messages of an ordered group wait for which
* `delays`: messages that are delivered later
* `filters/`: which messages of a topic a subscription is for
* `order_lines`: those of all ordered groups
* `receiving`: receiving with acknowledgement, put together
* `receive_rules`: what a receive must be like, and the limits
* `prepared_calls`: what the same receive, made again and again, asks for
* `receiver`: one look for messages
* `answer`: the answer to a receive, while it is filled and when it is given
* `attempts`: receives that may be repeated
* `remembered`: what was made of subscriptions, as long as they are used
* `selection`: which messages a receive wants
* `queue_cursor`: how services read queues of the broker's own: where they go on, and wait
* `kept_positions`: where they stand, as facts
* `place_reader`: reads the messages of a place
* `read_ahead`: a few more of them than a small receive asks for
* `side_state`: what receiving keeps in mind beside the ledger
* `figures`: what operators see of groups
* `standings`: the same of single messages
* `ways`: in which ways groups consume, and resets from outside
* `views`: what operators see of one moment: groups with their members, what waits
* `waiting_figures`: what operators see of what waits for its time
* `starts`: where a group begins in a topic
* `sources`: where a receive looks
* `acknowledging`: what consumers say of messages that they hold
* `cursors`: commits and resets
* `deletions`: groups and topics that were deleted
* `unconsumed`: files that are kept for groups
* `renewal`: what a living client holds stays invisible
* `dead_letters`: messages that were given out as often as may be
* `retry_moves`: messages that a group fails on for long
* `java_pops`: what a RocketMQ broker notes of messages that were popped
* `revivals`: such messages come again
* `queue_locks`: queues that ordered classic consumers have locked
* `sending_back`: classic consumers' messages that come again
"""
