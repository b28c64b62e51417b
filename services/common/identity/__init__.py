"""Who each side of a connection says it is.

* `tls`: TLS from certificate files
* `made_certificate`: or from one that is made
* `credentials`: who a caller says it is: a name and a secret
* `file_credentials`: who a service says it is, from a file
"""
