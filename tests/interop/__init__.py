"""Our stores opened by a real RocketMQ broker, and its stores opened by ours.

rocketmq.py   a real broker on a directory          remoting.py   what is said to it
ours.py       our store on the same directory       messages.py   what is stored, and how it is compared
"""
