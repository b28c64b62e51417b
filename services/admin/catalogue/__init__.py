"""Topics and groups: lists of them, and changes.

* `topics`: topics with the ends of their queues
* `topic_kinds`: what a topic is, by its name
* `groups`: subscription groups, and what they have not consumed
* `listing`: names in pages, and which of them are wanted
* `merging`: changes of a part of a topic or group
* `usable`: what was just made is known to its store
"""
