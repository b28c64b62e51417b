// A client in Go: every check against the probe service; one JSON line for each.
//
//	client TARGET [--ca FILE [--cert FILE --key FILE]] [--quick | --refused | --load [--batch N]]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	service      = "/tandemmq.test.Probe/"
	longestCheck = 200 * time.Second
	sizeLimit    = 16 << 20
)

// raw passes messages as they are; the content type becomes application/grpc+raw.
type raw struct{}

func (raw) Marshal(value any) ([]byte, error) {
	return *value.(*[]byte), nil
}

func (raw) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = append([]byte{}, data...)
	return nil
}

func (raw) Name() string { return "raw" }

type check struct {
	name  string
	quick bool
	run   func(context.Context, *grpc.ClientConn) error
}

func main() {
	authority := flag.String("ca", "", "who signed the server's certificate (PEM); means TLS")
	certificate := flag.String("cert", "", "own certificate")
	key := flag.String("key", "", "its key")
	quick := flag.Bool("quick", false, "some checks only")
	refused := flag.Bool("refused", false, "only check that the server does not talk to us")
	load := flag.Bool("load", false, "only many connections and many streams")
	target := os.Args[1]
	_ = flag.CommandLine.Parse(os.Args[2:])

	transport := insecure.NewCredentials()
	if *authority != "" {
		transport = secure(*authority, *certificate, *key)
	}
	dial := func() *grpc.ClientConn {
		connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(transport), grpc.WithDefaultCallOptions(
			grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(sizeLimit), grpc.MaxCallSendMsgSize(sizeLimit)))
		must(err)
		return connection
	}
	chosen := checks
	if *refused {
		chosen = []check{{"refused", true, isRefused}}
	} else if *load {
		chosen = loads(dial)
	}
	connection := dial()
	defer connection.Close()
	for _, check := range chosen {
		if check.quick || !*quick {
			report(check, connection)
		}
	}
}

func report(check check, connection *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), longestCheck)
	defer cancel()
	begin := time.Now()
	err := check.run(ctx, connection)
	detail := fmt.Sprintf("%d ms", time.Since(begin).Milliseconds())
	if err != nil {
		detail = err.Error()
	}
	line, _ := json.Marshal(map[string]any{"check": check.name, "ok": err == nil, "detail": detail})
	fmt.Println(string(line))
}

func secure(authority, certificate, key string) credentials.TransportCredentials {
	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(authority)
	must(err)
	if !trusted.AppendCertsFromPEM(pem) {
		must(errors.New("no certificate in " + authority))
	}
	config := &tls.Config{RootCAs: trusted}
	if certificate != "" {
		own, err := tls.LoadX509KeyPair(certificate, key)
		must(err)
		config.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(config)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func call(ctx context.Context, on *grpc.ClientConn, method string, request []byte, options ...grpc.CallOption) ([]byte, error) {
	var answer []byte
	err := on.Invoke(ctx, service+method, &request, &answer, options...)
	return answer, err
}

// stream is a call of any kind, as generated code would make it.
type stream struct{ grpc.ClientStream }

func open(ctx context.Context, on *grpc.ClientConn, method string, sends, receives bool) (stream, error) {
	made, err := on.NewStream(ctx, &grpc.StreamDesc{ClientStreams: sends, ServerStreams: receives}, service+method)
	return stream{made}, err
}

func openServer(ctx context.Context, on *grpc.ClientConn, method string, request []byte) (stream, error) {
	made, err := open(ctx, on, method, false, true)
	if err != nil {
		return made, err
	}
	if err := made.send(request); err != nil {
		return made, err
	}
	return made, made.CloseSend()
}

func (s stream) send(message []byte) error { return s.SendMsg(&message) }

func (s stream) receive() ([]byte, error) {
	var message []byte
	err := s.RecvMsg(&message)
	return message, err
}
