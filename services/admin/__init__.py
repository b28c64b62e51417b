"""The admin service: asks the others over gRPC, for people: API, console, jobs (to come)."""
