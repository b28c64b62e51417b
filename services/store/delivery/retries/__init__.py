"""Messages that come again, or no more.

* `retry_policy`: how long a group waits between deliveries
* `copies`: copies that the broker makes of messages itself
* `dead_letters`: messages that were given out as often as may be
* `retry_moves`: messages that a group fails on for long
* `java_pops`: what a RocketMQ broker notes of messages that were popped
* `revivals`: such messages come again
* `sending_back`: classic consumers' messages that come again
"""
