"""The last hour, collected in the background.

* `collected`: lag and state of the cluster, round after round
* `history`: rates, lag and replication of the hour
* `history_readings`: what a round says for it
* `send_latency`: how long sends took in a round
* `history_answer`: the hour as told
"""
