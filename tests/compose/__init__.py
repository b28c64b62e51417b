"""docker-compose.yml for real: built, started, used, damaged, stopped. Needs a Docker engine, or root to start one."""
