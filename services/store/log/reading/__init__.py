"""Reading records: whoever wants some of them takes one of these ways.

bulk.py             many messages of a queue at once, where nothing is special
named_records.py    those that units name, one by one
record_reader.py    one record, by where it begins
"""
