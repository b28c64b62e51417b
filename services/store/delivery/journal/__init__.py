"""Facts on their way into the commit log, and back out of it.

* `facts`: what is remembered of a group's progress, as values
* `journal`: facts on their way into the commit log
* `journal_format`: facts as bytes
* `base`: which records of the journal are still needed
* `follower`: reading the journal, at a start and on a slave
* `telling`: a place with many entries, told whole in many turns
* `images`: what consumerOffset.json and delayOffset.json say, as images of the journal
"""
