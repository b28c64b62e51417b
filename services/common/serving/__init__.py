"""A service's gRPC server, with all that is around it.

* `server`: ServiceHost: the server, of all that follows
* `grpc_server`: our transport or grpcio's, as the settings say
* `guard`: handlers that answer errors with the right status, and count what is in flight
* `guarded_direct`: the short ways of methods, for callers who may
* `grpc_status`: what gRPC callers are told of each kind of error
* `health`: grpc.health.v1, a status per service
* `node_service`: tandemmq.node.v1.Node: what a process says of itself
* `node_access`: who may ask that
* `shutdown`: SIGTERM and SIGINT as something to wait for
"""
