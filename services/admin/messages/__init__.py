"""Finding, reading, following and sending messages.

* `messages`: finding and sending messages
* `reading`: those of several queues and brokers as one
* `message_filter`: which of them are wanted
* `postponed`: those that wait for their time
* `message_ways`: who sent and who consumed a message, as its clients told
* `tail`: messages as they arrive
* `dead_letters`: messages that came to nothing, sent again
"""
