"""Giving messages out, and what consumers say of them.

* `receiving`: receiving with acknowledgement, put together
* `receiver`: one look for messages
* `receive_rules`: what a receive must be like, and the limits
* `prepared_calls`: what the same receive, made again and again, asks for
* `answer`: the answer to a receive, while it is filled and when it is given
* `attempts`: receives that may be repeated
* `remembered`: what was made of subscriptions, as long as they are used
* `selection`: which messages a receive wants
* `sources`: where a receive looks
* `waiting`: receives that wait for a message, and what wakes them
* `place_reader`: reads the messages of a place
* `read_ahead`: a few more of them than a small receive asks for
* `side_state`: what receiving keeps in mind beside the ledger
* `handles`: receipt handles as text
* `acknowledging`: what consumers say of messages that they hold
* `renewal`: what a living client holds stays invisible
"""
