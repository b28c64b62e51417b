"""The web console: the calls of tandemmq.admin.v1.Admin over HTTP, and pages for a browser that use nothing else.

::

    server.py      the HTTP server: addresses, TLS, start and end
    routes.py      which path is answered by what; errors as JSON; headers of every answer
    gateway.py     POST /api/Method and /stream/Method: protobuf-JSON in, the guarded handler, protobuf-JSON out
    json_form.py   messages as JSON
    senders.py     streamed answers, as lines or as a file
    call.py        a call as its handler sees it, in place of gRPC's context
    callers.py     who sends a request: a session, or a user and secret
    sessions.py    the sessions, in memory
    visits.py      requests that a page of another site may have sent are refused
    files.py       the static files, held in memory with their hashes
    errors.py      refusals, and gRPC codes as HTTP statuses
    static/        pages: index.html, app.css and ES modules, served as they are

aiohttp is imported here and nowhere else; the service imports this package only if `consoleEnable` is set.
"""
