"""Delivery: who gets which message, when, and how often.

The store keeps messages; delivery is what happens to them until somebody has dealt with them. What must survive is a
message of the commit log (`journal/facts`); everything else here is made again from it.

* `port`: what fronts ask of delivery, as calls, and what they get
* `errors`: what delivery refuses
* `delivery`: all parts as one thing, which fronts call
* `hooked_delivery`: the same with hooks around receives and acknowledgements
* `lifecycle`: when delivery works: on a master whose journal is read
* `opening`: making the state ready where messages are to be given out
* `transactions/`: half messages, how they end, and who is asked when they do not
* `clock`: the time by which messages are due again
* `delays/`: messages that are delivered later
* `filters/`: which messages of a topic a subscription is for
* `queue_cursor`: how services read queues of the broker's own: where they go on, and wait
* `journal/`: facts on their way into the commit log, and back out of it
* `ledger/`: what each group has dealt with in each queue
* `receiving/`: giving messages out, and what consumers say of them
* `retries/`: messages that come again, or no more
* `members/`: the groups, and the clients that are there for them
* `figures/`: what operators see
* `compiled/`: the compiled twins of handles and facts
"""
