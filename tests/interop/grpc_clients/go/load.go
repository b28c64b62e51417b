package main

import (
	"context"
	"flag"
	"fmt"

	"google.golang.org/grpc"
)

const (
	connections = 1_000
	streams     = 10_000
)

var batch = flag.Int("batch", streams, "calls that are begun before the server must have seen them")

// loads are the checks that are about numbers. The server's counters are asked on a connection of its own.
func loads(dial func() *grpc.ClientConn) []check {
	return []check{
		{"connections", false, func(ctx context.Context, on *grpc.ClientConn) error { return manyConnections(ctx, dial) }},
		{"waiting_calls", false, func(ctx context.Context, on *grpc.ClientConn) error { return waitingCalls(ctx, on, dial()) }},
		{"open_streams", false, func(ctx context.Context, on *grpc.ClientConn) error { return openStreams(ctx, on, dial()) }},
	}
}

// manyConnections: all are open at the same time, each with a call that waits and one that is answered.
func manyConnections(ctx context.Context, dial func() *grpc.ClientConn) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]*grpc.ClientConn, connections)
	failures := make(chan error, connections)
	for at := range all {
		all[at] = dial()
		defer all[at].Close()
		go func(on *grpc.ClientConn, text string) {
			err := echoes(ctx, on, []byte(text))
			if err == nil {
				_, err = openServer(waiting, on, "Wait", nil)
			}
			failures <- err
		}(all[at], fmt.Sprint("connection ", at))
	}
	if err := first(failures, connections); err != nil {
		return err
	}
	if err := until(ctx, all[0], func(now counters) bool { return now.Active == connections }); err != nil {
		return err
	}
	for _, on := range all {
		if err := unary(ctx, on); err != nil {
			return err
		}
	}
	cancel()
	return until(ctx, all[0], func(now counters) bool { return now.Active == 0 })
}

// waitingCalls: all of one connection wait at the same time, and are cancelled together.
func waitingCalls(ctx context.Context, on, other *grpc.ClientConn) error {
	defer other.Close()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	for at := 1; at <= streams; at++ {
		if _, err := openServer(waiting, on, "Wait", nil); err != nil {
			return err
		}
		if err := arrived(ctx, other, at); err != nil {
			return err
		}
	}
	cancel()
	if err := until(ctx, other, func(now counters) bool { return now.Active == 0 }); err != nil {
		return err
	}
	return unary(ctx, on)
}

// openStreams: all of one connection are open at the same time, and each answers three times.
func openStreams(ctx context.Context, on, other *grpc.ClientConn) error {
	defer other.Close()
	all := make([]stream, streams)
	for at := range all {
		made, err := open(ctx, on, "Converse", true, true)
		if err != nil {
			return err
		}
		all[at] = made
		if err := arrived(ctx, other, at+1); err != nil {
			return err
		}
	}
	for round := 0; round < 3; round++ {
		for at, made := range all {
			if err := made.send([]byte(fmt.Sprintf("stream %d round %d", at, round))); err != nil {
				return err
			}
		}
		for at, made := range all {
			answer, err := made.receive()
			if err := equal(err, string(answer), fmt.Sprintf("STREAM %d ROUND %d", at, round)); err != nil {
				return err
			}
		}
	}
	for _, made := range all {
		_ = made.CloseSend()
	}
	return until(ctx, other, func(now counters) bool { return now.Active == 0 })
}

// arrived waits, at the end of each batch, until the server has so many calls.
func arrived(ctx context.Context, other *grpc.ClientConn, calls int) error {
	if calls%*batch != 0 && calls != streams {
		return nil
	}
	return until(ctx, other, func(now counters) bool { return now.Active == calls })
}

func first(failures <-chan error, count int) error {
	for at := 0; at < count; at++ {
		if err := <-failures; err != nil {
			return err
		}
	}
	return nil
}
