"""Who did what.

* `actions`: the log of actions
* `recording`: puts calls into it
* `line_file`: the file
"""
