// The official Go client: `client HOST:PORT FEATURE TOPIC GROUP`; prints OK when the feature does what it should.
// It begins with TLS, and verifies nothing.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

var endpoint, feature, topic, group string

const seconds = 60 * time.Second

const flowBody = 64 << 10

func number(name string) float64 {
	found, err := strconv.ParseFloat(os.Getenv(name), 64)
	check(err)
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ensure(good bool, what ...any) {
	if !good {
		panic(fmt.Sprint(what...))
	}
}

func config() *rmq.Config {
	return &rmq.Config{
		Endpoint: endpoint, ConsumerGroup: group, NameSpace: os.Getenv("CLIENT_NAMESPACE"),
		Credentials: &credentials.SessionCredentials{
			AccessKey: os.Getenv("CLIENT_KEY"), AccessSecret: os.Getenv("CLIENT_SECRET"),
		},
	}
}

func producer(options ...rmq.ProducerOption) rmq.Producer {
	made, err := rmq.NewProducer(config(), append(options, rmq.WithTopics(topic))...)
	check(err)
	check(made.Start())
	return made
}

func text(body string) *rmq.Message { return &rmq.Message{Topic: topic, Body: []byte(body)} }

func send(to rmq.Producer, message *rmq.Message) *rmq.SendReceipt {
	receipts, err := to.Send(context.Background(), message)
	check(err)
	return receipts[0]
}

func simple(filter *rmq.FilterExpression) rmq.SimpleConsumer {
	made, err := rmq.NewSimpleConsumer(config(), rmq.WithSimpleAwaitDuration(4*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: filter}))
	check(err)
	check(made.Start())
	return made
}

// take gives so many messages; those that come are acknowledged if that is wanted.
func take(from rmq.SimpleConsumer, count int, acknowledge bool) []*rmq.MessageView {
	var found []*rmq.MessageView
	for end := time.Now().Add(seconds); len(found) < count && time.Now().Before(end); {
		some, err := from.Receive(context.Background(), 16, 20*time.Second)
		if status, ok := rmq.AsErrRpcStatus(err); ok && status.GetCode() == 40401 {
			continue
		}
		check(err)
		for _, one := range some {
			found = append(found, one)
			if acknowledge {
				check(from.Ack(context.Background(), one))
			}
		}
	}
	ensure(len(found) == count, len(found), " of ", count)
	return found
}

func bodies(of []*rmq.MessageView) string {
	var texts []string
	for _, one := range of {
		texts = append(texts, string(one.GetBody()))
	}
	sort.Strings(texts)
	return strings.Join(texts, " ")
}

type seen struct {
	sync.Mutex
	bodies   []string
	attempts []int32
}

func (s *seen) count() int {
	s.Lock()
	defer s.Unlock()
	return len(s.bodies)
}

func push(fails int) *seen {
	found := &seen{}
	consume := func(one *rmq.MessageView) rmq.ConsumerResult {
		found.Lock()
		defer found.Unlock()
		found.bodies = append(found.bodies, string(one.GetBody()))
		found.attempts = append(found.attempts, one.GetDeliveryAttempt())
		if len(found.bodies) <= fails {
			return rmq.FAILURE
		}
		return rmq.SUCCESS
	}
	made, err := rmq.NewPushConsumer(config(), rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: consume}))
	check(err)
	check(made.Start())
	return found
}

func (s *seen) until(count int) {
	for end := time.Now().Add(seconds); s.count() < count; time.Sleep(50 * time.Millisecond) {
		ensure(time.Now().Before(end), s.bodies)
	}
}

var features = map[string]func(){
	"send": func() { ensure(send(producer(), text("hello")).MessageID != "") },
	"simple_consumer": func() {
		to := producer()
		for i := 0; i < 5; i++ {
			send(to, text(fmt.Sprint("m", i)))
		}
		found := bodies(take(simple(rmq.SUB_ALL), 5, true))
		ensure(found == "m0 m1 m2 m3 m4", found)
	},
	"tag_filter": func() {
		to := producer()
		for _, tag := range []string{"a", "b", "c"} {
			message := text(tag)
			message.SetTag(tag)
			send(to, message)
		}
		found := bodies(take(simple(rmq.NewFilterExpression("a || c")), 2, true))
		ensure(found == "a c", found)
	},
	"redelivery": func() {
		send(producer(), text("again"))
		from := simple(rmq.SUB_ALL)
		first := take(from, 1, false)[0]
		begun := time.Now()
		check(from.ChangeInvisibleDuration(first, 2*time.Second))
		second := take(from, 1, true)[0]
		ensure(second.GetDeliveryAttempt() == 2, second.GetDeliveryAttempt())
		took := time.Since(begun)
		ensure(took > 1500*time.Millisecond && took < 4500*time.Millisecond, took)
	},
	"push_consumer": func() {
		found := push(0)
		to := producer()
		for i := 0; i < 20; i++ {
			send(to, text(fmt.Sprint("p", i)))
		}
		found.until(20)
	},
	"push_retry": func() {
		found := push(1)
		send(producer(), text("fails once"))
		found.until(2)
		ensure(found.attempts[0] == 1 && found.attempts[1] == 2, found.attempts)
	},
	// The group retries once. The topic of dead letters comes with the first one.
	"dead_letter": func() {
		found := push(1 << 30)
		message := text("dead")
		message.SetTag("t")
		send(producer(), message)
		topic, group = "%DLQ%"+group, group+"-letters"
		var from rmq.SimpleConsumer
		for end := time.Now().Add(seconds); from == nil; time.Sleep(50 * time.Millisecond) {
			ensure(time.Now().Before(end), "there are no dead letters")
			made, err := rmq.NewSimpleConsumer(config(), rmq.WithSimpleAwaitDuration(4*time.Second),
				rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
			check(err)
			if made.Start() == nil {
				from = made
			}
		}
		letter := take(from, 1, true)[0]
		ensure(string(letter.GetBody()) == "dead" && *letter.GetTag() == "t" && letter.GetTopic() == topic, letter)
		ensure(fmt.Sprint(found.attempts) == "[1 2]", found.attempts)
	},
	"fifo": func() {
		found := push(0)
		to := producer()
		for i := 0; i < 10; i++ {
			message := text(fmt.Sprint(i))
			message.SetMessageGroup("one")
			send(to, message)
		}
		found.until(10)
		ensure(strings.Join(found.bodies, "") == "0123456789", found.bodies)
	},
	"delay": func() {
		due := time.Now().Add(3 * time.Second)
		message := text("later")
		message.SetDelayTimestamp(due)
		send(producer(), message)
		take(simple(rmq.SUB_ALL), 1, true)
		late := time.Since(due)
		ensure(late > -100*time.Millisecond && late < 3*time.Second, late)
	},
	"transaction": func() {
		checker := &rmq.TransactionChecker{Check: func(*rmq.MessageView) rmq.TransactionResolution { return rmq.UNKNOWN }}
		to := producer(rmq.WithTransactionChecker(checker))
		committed, rolledBack := to.BeginTransaction(), to.BeginTransaction()
		_, err := to.SendWithTransaction(context.Background(), text("committed"), committed)
		check(err)
		_, err = to.SendWithTransaction(context.Background(), text("rolled back"), rolledBack)
		check(err)
		check(committed.Commit())
		check(rolledBack.RollBack())
		found := bodies(take(simple(rmq.SUB_ALL), 1, true))
		ensure(found == "committed", found)
	},
	"orphan": func() {
		checker := &rmq.TransactionChecker{Check: func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT }}
		to := producer(rmq.WithTransactionChecker(checker))
		_, err := to.SendWithTransaction(context.Background(), text("orphan"), to.BeginTransaction())
		check(err)
		found := bodies(take(simple(rmq.SUB_ALL), 1, true))
		ensure(found == "orphan", found)
	},
	// Sends and consumes while the broker is killed and comes back: an application tries a send again that failed.
	"outage": func() {
		found, to, failed := push(0), producer(), 0
		for i := 0; i < 60; i++ {
			for end := time.Now().Add(seconds); ; failed++ {
				_, err := to.Send(context.Background(), text(fmt.Sprint("o", i)))
				if err == nil {
					break
				}
				ensure(time.Now().Before(end), "the client does not recover: ", err)
				time.Sleep(200 * time.Millisecond)
			}
			fmt.Println("SENT", i)
			time.Sleep(100 * time.Millisecond)
		}
		found.until(60)
		found.Lock()
		defer found.Unlock()
		different := map[string]bool{}
		for _, body := range found.bodies {
			different[body] = true
		}
		fmt.Println(failed, "sends failed,", len(found.bodies)-len(different), "messages came again")
		ensure(len(different) == 60, found.bodies)
	},
	// Sends FLOW_BYTES a second for FLOW_SECONDS and consumes them meanwhile: each must come, no send may fail.
	"flow": func() {
		each := float64(flowBody) / number("FLOW_BYTES")
		count := int64(number("FLOW_SECONDS") / each)
		var next, given, different atomic.Int64
		var seen sync.Map
		var workers sync.WaitGroup
		from, to := simple(rmq.SUB_ALL), producer()
		begun := time.Now()
		for range 4 {
			workers.Go(func() {
				for different.Load() < count {
					some, err := from.Receive(context.Background(), 32, seconds)
					ensure(err == nil || strings.Contains(err.Error(), "MESSAGE_NOT_FOUND"), err)
					for _, one := range some {
						given.Add(1)
						if _, again := seen.LoadOrStore(binary.BigEndian.Uint32(one.GetBody()), true); !again {
							different.Add(1)
						}
						check(from.Ack(context.Background(), one))
					}
				}
			})
		}
		for range 8 {
			workers.Go(func() {
				for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
					time.Sleep(time.Until(begun.Add(time.Duration(float64(i) * each * 1e9))))
					body := binary.BigEndian.AppendUint32(nil, uint32(i))
					send(to, &rmq.Message{Topic: topic, Body: append(body, make([]byte, flowBody-4)...)})
				}
			})
		}
		workers.Wait()
		rate := float64(count*flowBody) / time.Since(begun).Seconds() / 1e6
		fmt.Printf("%d messages, %.1f MB/s, %d came again\n", count, rate, given.Load()-count)
	},
	"wrong_credentials": func() {
		made, err := rmq.NewProducer(config(), rmq.WithTopics(topic))
		check(err)
		if err = made.Start(); err == nil {
			_, err = made.Send(context.Background(), text("no"))
		}
		ensure(err != nil, "it was sent")
	},
}

func main() {
	home, err := os.MkdirTemp("", "go-client-")
	check(err)
	os.Setenv("HOME", home)
	rmq.ResetLogger()
	endpoint, feature, topic, group = os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	features[feature]()
	fmt.Println("OK")
	os.Exit(0) // its clients would take seconds to end
}
