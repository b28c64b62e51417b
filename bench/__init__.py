"""Benchmarks: the store beside what a user would pick instead, in one run on one machine.

    python -m bench [--quick] [--only NAME ...] [--rounds N] [--json FILE]

Contestants of a case take turns (A B A B ...), so that whatever else the machine does hits all alike; medians are
compared, as ratios. Load comes from generators in C (load/), so that the client costs little; the CPU time of a server
is that of its whole process tree.

    model.py      samples, series, results            table.py     how they are shown
    process.py    servers as processes                machine.py   what the machine is
    generators.py the load generators: build and run  payloads.py  what is sent
    peers/        RocketMQ, NATS, Redis, bare servers store.py     our store as a contestant
    groups/       the cases                           worker.py    measurements inside a process of their own
    rocketmq5.py  RocketMQ 5 clients' load          gateways.py    our store behind gateways
    goals.py      the numbers to reach                connections.py  idle ones, for their memory
    pair.py       two of our nodes                    catching_up.py  how fast an empty slave gets on
    conversation.py  a worker that is asked again     page_cache.py   files that are not in memory
    memory.py     peaks of a Spark job's processes    spark_scaling.py  a rebuild on more cores, on paper
"""
