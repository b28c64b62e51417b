"""The client that most programs use, against real stores."""
