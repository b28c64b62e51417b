"""The name server as a process, with clients over real sockets."""
