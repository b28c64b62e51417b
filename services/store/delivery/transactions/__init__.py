"""Transactions: half messages, as RocketMQ keeps them, until their producer says how they end.

::

    half topic   0 1 2 3 4 5 6 ...   each half message; nothing there is ever changed
    op topic     "0" "2" "3" ...     those that are over: committed, rolled back, given up, or appended again

What is pending is the difference. It lives in memory, read anew when a mastership begins, from the positions that
`CID_RMQ_SYS_TRANS` has in both topics; a Java broker on the same directory goes on from there, and the other way round.

* `transactions`: the part of delivery that fronts reach, and its life
* `halves`: what is pending and what has ended of late; a state machine
* `half_message`: a half message and an op record: what they say, and what is made of them
* `half_log`: both topics in the log
* `following`: from the topics to the state
* `checking`: when producers are asked, and what is given up
* `handle`: what a producer ends its transaction with
"""
