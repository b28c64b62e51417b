"""Small files beside the log: how far derived files are durable, who holds the directory, how it was left.

abort_file.py         `abort`
checkpoint_file.py    `checkpoint`
checkpointer.py       makes derived files durable, and writes down how far
end_file.py           `tandem.end`
lock.py               `lock`
manifest.py           `tandem.manifest`
running_flags.py      why nothing may be written
"""
