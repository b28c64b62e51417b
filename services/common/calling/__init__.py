"""Calling other services of ours.

* `addresses`: addresses of other services, as settings hold them
* `client_channel`: channels to them: TLS, certificate, name
* `followed_peer`: attempts to keep in touch with another process, and what the log says of it
* `backoff`: the pauses between attempts
"""
