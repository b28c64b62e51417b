package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const large = 7 << 20

var checks = []check{
	{"unary", true, unary},
	{"empty", false, empty},
	{"client_stream", true, clientStream},
	{"server_stream", true, serverStream},
	{"bidi_stream", true, bidiStream},
	{"no_messages", false, noMessages},
	{"many_messages", false, manyMessages},
	{"large_messages", true, largeMessages},
	{"large_stream", false, largeStream},
	{"too_large", false, tooLarge},
	{"metadata", false, mirrored},
	{"status", true, failed},
	{"all_statuses", false, allStatuses},
	{"crash", false, crash},
	{"unimplemented", false, unimplemented},
	{"deadline", false, deadline},
	{"cancellation", false, cancellation},
	{"cancelled_stream", false, cancelledStream},
	{"slow_reader", false, slowReader},
	{"pipelined", false, pipelined},
	{"gzip", false, compressed},
}

func unary(ctx context.Context, on *grpc.ClientConn) error {
	return echoes(ctx, on, []byte("hello"))
}

func empty(ctx context.Context, on *grpc.ClientConn) error {
	return echoes(ctx, on, nil)
}

func echoes(ctx context.Context, on *grpc.ClientConn, message []byte, options ...grpc.CallOption) error {
	answer, err := call(ctx, on, "Echo", message, options...)
	if err == nil && !bytes.Equal(answer, message) {
		return fmt.Errorf("%d bytes came back as %d others", len(message), len(answer))
	}
	return err
}

func collect(ctx context.Context, on *grpc.ClientConn, messages [][]byte) ([]byte, error) {
	made, err := open(ctx, on, "Collect", true, false)
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		if err := made.send(message); err != nil {
			return nil, err
		}
	}
	if err := made.CloseSend(); err != nil {
		return nil, err
	}
	return made.receive()
}

func clientStream(ctx context.Context, on *grpc.ClientConn) error {
	answer, err := collect(ctx, on, [][]byte{[]byte("a"), {}, []byte("ccc")})
	return equal(err, string(answer), "a||ccc")
}

func repeated(ctx context.Context, on *grpc.ClientConn, count, size int) error {
	made, err := openServer(ctx, on, "Repeat", []byte(fmt.Sprintf("%d:%d", count, size)))
	if err != nil {
		return err
	}
	for at := 0; at < count; at++ {
		message, err := made.receive()
		if err != nil || !bytes.Equal(message, bytes.Repeat([]byte("r"), size)) {
			return fmt.Errorf("answer %d has %d bytes: %v", at, len(message), err)
		}
	}
	if _, err := made.receive(); err != io.EOF {
		return fmt.Errorf("after the last answer: %v", err)
	}
	return nil
}

func serverStream(ctx context.Context, on *grpc.ClientConn) error {
	return repeated(ctx, on, 10, 1000)
}

func bidiStream(ctx context.Context, on *grpc.ClientConn) error {
	made, err := open(ctx, on, "Converse", true, true)
	if err != nil {
		return err
	}
	for at := 0; at < 100; at++ {
		if err := pingPong(made, fmt.Sprintf("message %d", at)); err != nil {
			return err
		}
	}
	_ = made.CloseSend()
	if _, err = made.receive(); err != io.EOF {
		return fmt.Errorf("after the last answer: %v", err)
	}
	return nil
}

func pingPong(made stream, text string) error {
	if err := made.send([]byte(text)); err != nil {
		return err
	}
	answer, err := made.receive()
	return equal(err, string(answer), strings.ToUpper(text))
}

func noMessages(ctx context.Context, on *grpc.ClientConn) error {
	answer, err := collect(ctx, on, nil)
	if err := equal(err, string(answer), ""); err != nil {
		return err
	}
	return repeated(ctx, on, 0, 0)
}

func manyMessages(ctx context.Context, on *grpc.ClientConn) error {
	messages := make([][]byte, 10_000)
	for at := range messages {
		messages[at] = []byte(fmt.Sprint(at))
	}
	answer, err := collect(ctx, on, messages)
	if err != nil || !bytes.Equal(answer, bytes.Join(messages, []byte("|"))) {
		return fmt.Errorf("collected %d bytes: %v", len(answer), err)
	}
	return repeated(ctx, on, 10_000, 16)
}

func largeMessages(ctx context.Context, on *grpc.ClientConn) error {
	message := make([]byte, large)
	for at := range message {
		message[at] = byte(at * 7 >> 3)
	}
	return echoes(ctx, on, message)
}

func largeStream(ctx context.Context, on *grpc.ClientConn) error {
	const count = 16
	made, err := open(ctx, on, "Converse", true, true)
	if err != nil {
		return err
	}
	go func() {
		for at := 0; at < count; at++ {
			_ = made.send(bytes.Repeat([]byte{byte('a' + at)}, 1<<20))
		}
		_ = made.CloseSend()
	}()
	for at := 0; at < count; at++ {
		message, err := made.receive()
		if err != nil || !bytes.Equal(message, bytes.Repeat([]byte{byte('A' + at)}, 1<<20)) {
			return fmt.Errorf("answer %d has %d bytes: %v", at, len(message), err)
		}
	}
	return nil
}

func tooLarge(ctx context.Context, on *grpc.ClientConn) error {
	_, err := call(ctx, on, "Echo", make([]byte, 9<<20))
	if err := hasCode(err, codes.ResourceExhausted); err != nil {
		return err
	}
	return unary(ctx, on)
}

func mirrored(ctx context.Context, on *grpc.ClientConn) error {
	sent := metadata.Pairs("x-plain", "two words, ~!@", "x-several", "one", "x-several", "two", "x-bytes-bin", "\x00\x01,\xfe\xff",
		"x-empty-bin", "", "x-long", strings.Repeat("0123456789", 300))
	var initial, trailing metadata.MD
	answer, err := call(metadata.NewOutgoingContext(ctx, sent), on, "Mirror", nil, grpc.Header(&initial), grpc.Trailer(&trailing))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`^(ipv4:127\.0\.0\.1:\d+|ipv6:(%5B|\[)::1(%5D|\]):\d+|unix:.*)$`).Match(answer) {
		return fmt.Errorf("peer() is %q", answer)
	}
	if err := equal(nil, initial["x-initial-bin"], []string{"\x00\xfe"}); err != nil {
		return err
	}
	if err := equal(nil, initial["x-initial"], []string{"first"}); err != nil {
		return err
	}
	for key, values := range sent {
		if err := equal(nil, trailing[key], values); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func failed(ctx context.Context, on *grpc.ClientConn) error {
	var trailing metadata.MD
	_, err := call(ctx, on, "Fail", []byte("NOT_FOUND"), grpc.Trailer(&trailing))
	if err := equal(hasCode(err, codes.NotFound), status.Convert(err).Message(), "said so é%"); err != nil {
		return err
	}
	if err := equal(nil, trailing["x-failed"], []string{"yes"}); err != nil {
		return err
	}
	return equal(nil, trailing["x-failed-bin"], []string{"\x00\x01\xff"})
}

func allStatuses(ctx context.Context, on *grpc.ClientConn) error {
	names := strings.Fields("CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED " +
		"RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED")
	for number, name := range names {
		_, err := call(ctx, on, "Fail", []byte(name))
		if err := hasCode(err, codes.Code(number+1)); err != nil {
			return err
		}
	}
	return nil
}

func crash(ctx context.Context, on *grpc.ClientConn) error {
	_, err := call(ctx, on, "Crash", nil)
	return hasCode(err, codes.Unknown)
}

func unimplemented(ctx context.Context, on *grpc.ClientConn) error {
	_, err := call(ctx, on, "Nothing", nil)
	return hasCode(err, codes.Unimplemented)
}

func isRefused(ctx context.Context, on *grpc.ClientConn) error {
	_, err := call(ctx, on, "Echo", nil)
	return hasCode(err, codes.Unavailable)
}

func deadline(ctx context.Context, on *grpc.ClientConn) error {
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	made, err := open(short, on, "Converse", true, true)
	if err != nil {
		return err
	}
	_, err = call(short, on, "Wait", nil)
	if err := hasCode(err, codes.DeadlineExceeded); err != nil {
		return err
	}
	_, err = made.receive()
	if err := hasCode(err, codes.DeadlineExceeded); err != nil {
		return err
	}
	return until(ctx, on, func(now counters) bool { return now.Active == 0 })
}

func cancellation(ctx context.Context, on *grpc.ClientConn) error {
	before, err := count(ctx, on)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := call(waiting, on, "Wait", nil)
		ended <- err
	}()
	if err := until(ctx, on, func(now counters) bool { return now.Active == 1 }); err != nil {
		return err
	}
	cancel()
	if err := hasCode(<-ended, codes.Canceled); err != nil {
		return err
	}
	return until(ctx, on, func(now counters) bool { return now.Active == 0 && now.Cancelled == before.Cancelled+1 })
}

func cancelledStream(ctx context.Context, on *grpc.ClientConn) error {
	dripping, cancel := context.WithCancel(ctx)
	defer cancel()
	made, err := openServer(dripping, on, "Drip", nil)
	for at := 0; at < 1000 && err == nil; at++ {
		_, err = made.receive()
	}
	if err != nil {
		return err
	}
	cancel()
	return until(ctx, on, func(now counters) bool { return now.Active == 0 })
}

// slowReader: a stream that nobody reads costs the server a bounded number of bytes, and its neighbours nothing.
func slowReader(ctx context.Context, on *grpc.ClientConn) error {
	before, err := count(ctx, on)
	if err != nil {
		return err
	}
	dripping, cancel := context.WithCancel(ctx)
	defer cancel()
	made, err := openServer(dripping, on, "Drip", nil)
	if err != nil {
		return err
	}
	if _, err := made.receive(); err != nil {
		return err
	}
	for at := 0; at < 300; at++ {
		if err := echoes(ctx, on, make([]byte, 10_000)); err != nil {
			return err
		}
	}
	now, err := count(ctx, on)
	if err != nil || now.Dripped-before.Dripped > 32<<10 {
		return fmt.Errorf("%d KiB for a stream that nobody reads: %v", now.Dripped-before.Dripped, err)
	}
	cancel()
	return until(ctx, on, func(now counters) bool { return now.Active == 0 })
}

func pipelined(ctx context.Context, on *grpc.ClientConn) error {
	const calls, inFlight = 10_000, 1_000
	var failure error
	var once sync.Once
	var all sync.WaitGroup
	for worker := 0; worker < inFlight; worker++ {
		all.Add(1)
		go func(first int) {
			defer all.Done()
			for at := first; at < calls; at += inFlight {
				if err := echoes(ctx, on, []byte(fmt.Sprintf("call %d", at))); err != nil {
					once.Do(func() { failure = err })
					return
				}
			}
		}(worker)
	}
	all.Wait()
	return failure
}

func compressed(ctx context.Context, on *grpc.ClientConn) error {
	return echoes(ctx, on, bytes.Repeat([]byte("compressible "), 100_000), grpc.UseCompressor(gzip.Name))
}

// -- what they are made of

type counters struct{ Active, Cancelled, Dripped int }

func count(ctx context.Context, on *grpc.ClientConn) (counters, error) {
	var now counters
	answer, err := call(ctx, on, "Count", nil)
	if err == nil {
		err = json.Unmarshal(answer, &now)
	}
	return now, err
}

func until(ctx context.Context, on *grpc.ClientConn, wanted func(counters) bool) error {
	for give := time.Now().Add(100 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		now, err := count(ctx, on)
		if err != nil || wanted(now) {
			return err
		}
		if time.Now().After(give) {
			return fmt.Errorf("the server's counters stay at %+v", now)
		}
	}
}

func hasCode(err error, wanted codes.Code) error {
	if status.Code(err) != wanted {
		return fmt.Errorf("%v expected, not %v", wanted, err)
	}
	return nil
}

func equal(err error, actual, wanted any) error {
	if err == nil && !reflect.DeepEqual(actual, wanted) {
		return fmt.Errorf("%q is not %q", actual, wanted)
	}
	return err
}
