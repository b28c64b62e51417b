"""What is known of a broker's topics, groups and queues, to make lists of.

* `books`: what metasync and store know, put together
* `tables`: topics, groups and offsets, from the pages that metasync sends
* `mirror`: a copy of metasync's tables that follows what changes there
* `queue_ends`: the first and last offsets of a store's queues
* `store_times`: how old messages are
"""
