"""Commands that send, read and measure.

bench.py       `tandem bench`: a quick measure of a cluster that runs, from where one stands
consume.py     `tandem consume` and `tandem worker`: taking messages for a group, each of them once
find.py        `tandem message query|view`: finding messages by key, and reading one by its id
messages.py    a stored message, as text for people and as JSON for programs
offsets.py     `tandem topic offsets`: what topics and queues there are, and where they begin and end
pull.py        `tandem pull`: reading a topic, as far as it goes or as it grows
recall.py      `tandem recall`: a message that waits for its time is not delivered
send.py        `tandem send`: one message, a repeated one, or a file of them
special.py     what `tandem send` can ask for: a later delivery, an order, a transaction
top.py         `tandem top`: a cluster that is looked at again and again
"""
