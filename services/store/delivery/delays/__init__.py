"""Messages that are delivered later: by a delay level, or at any time.

They wait in topics of the broker's own (`broker/postponing.py` puts them there). When they are due they are copied to
their real topic and queue, and a fact in the journal says how far that has come.

* `delays`: all of it as one service of the master
* `levels`: the queues of SCHEDULE_TOPIC_XXXX, one for each delay level
* `timed_messages`: what waits in rmq_sys_wheel_timer
* `timer_window`: the timers that are due next, in memory
* `timer_follower`: keeps the index of timers in step with the log
* `timer_index`: all timers by time, on disk
* `timer_checkpoint`: position and sizes of the index, as text
* `timer_check`: RocketMQ's file of how far timers are delivered, as bytes
* `timer_check_file`: keeps that file
* `timer_slot`: a stretch of time and its file
* `timer_entry`: one timer in the index
* `recalls`: taking back messages that wait for their time
* `due_copies`: the copy of a message that is due
* `counts`: what has become of messages that waited
"""
