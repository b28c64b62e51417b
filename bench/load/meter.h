/*
 * What every load generator shares: the clock, the phases of a run, and the result line.
 *
 * A run has three phases: warm-up (nothing counted), measuring, and a drain in which no request is made and every
 * outstanding answer must come: what does not come within ten seconds is an error. The harness reads the server's CPU time when it sees START and END on our
 * standard output, so both lines are flushed at once; the last line is one JSON object with what was counted.
 */
#ifndef TANDEM_BENCH_METER_H
#define TANDEM_BENCH_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meter {
    uint64_t warm_ns, run_ns;          /* how long each phase lasts */
    uint64_t began, start, end;        /* when: process, measuring, drain (0 = not yet) */
    bool measuring, closing;           /* counting now; no new requests please */
    uint64_t ok, errors;               /* answered requests, refused requests (errors count in every phase) */
    uint64_t outstanding;              /* what was begun and has not ended; kept by the generator */
    uint64_t rx_bytes, rx_messages;    /* payload bytes and messages received while measuring */
    uint32_t *latency;                 /* nanoseconds, one entry per counted answer */
    size_t latencies, capacity;
    double cpu_at_start, cpu;          /* our own CPU seconds, to see whether the generator is the limit */
};

uint64_t now_ns(void);

/* Prepares a meter for a run of warm + run seconds. */
void meter_init(struct meter *m, double warm, double run);

/* Moves to the next phase when it is time. Returns false once nothing is outstanding any more: leave the event loop. */
bool meter_tick(struct meter *m);

/* One request answered well; sent_at is when it was made. Counts only while measuring. */
void meter_ok(struct meter *m, uint64_t sent_at);

/* One request refused; `why` is shown for the first few. */
void meter_error(struct meter *m, const char *why, size_t length);

/* Prints the result line. `items` is the number of messages in one request. Returns the exit code. */
int meter_report(struct meter *m, unsigned items);

/*
 * Opens a non-blocking TCP connection to "host:port" (numeric host) with Nagle's algorithm off; exits on failure. Of
 * several, with commas between them, each call takes the next: all calls must be given the same list.
 */
int dial(const char *targets);

/* Reads a whole file; exits on failure. */
uint8_t *read_file(const char *path, size_t *length);

/* Ends the process with a message. */
void die(const char *what) __attribute__((noreturn));

#endif
