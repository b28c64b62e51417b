"""The messages of RocketMQ 5's client protocol, in a package of ours; `tandemmq.store.fronts.rocketmq5` serves them."""
