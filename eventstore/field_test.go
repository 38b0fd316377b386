package eventstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// clientEnv makes this test binary a node's client on the server it names: it
// claims the partition of the conversation c1, takes messages and never
// acknowledges them.
const clientEnv = "ROLLCALL_TEST_CLIENT"

func client(url string) {
	ctx := context.Background()
	nc, err := nats.Connect(url)
	if err == nil {
		var s *eventstore.JetStream
		if s, err = eventstore.Open(ctx, nc, eventstore.Config{}); err == nil {
			err = take(ctx, s)
		}
	}
	fmt.Println("error:", err)
}

func take(ctx context.Context, s *eventstore.JetStream) error {
	l, err := s.Claim(ctx, "n1", conv1.Partition())
	if err != nil {
		return err
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		return err
	}
	for {
		d, err := r.Next(ctx)
		if err != nil {
			return err
		}
		fmt.Println("took", string(d.Envelope().Data))
	}
}

var conv1 = domain.Key{Tenant: "main", Conversation: "c1"}

// redelivery is how soon the next owner has what a dead one had taken: the lease
// lapses, and no acknowledgement is waited for.
const redelivery = eventstore.LeaseTTL + 1500*time.Millisecond

// b54-redelivery-after-client-died: what a client had taken that was killed
// comes again within the time of a lease to another node, and at once to the
// same one, never only after the wait for an acknowledgement.
func TestRedeliveryAfterClientDied(t *testing.T) {
	t.Run("b54-redelivery-after-client-died", redeliveryAfterClientDied)
}

func redeliveryAfterClientDied(t *testing.T) {
	ctx := patient(t)
	server := natsdtest.Start(t)
	s := natsdtest.Open(t, natsdtest.Connect(t, server), eventstore.Config{})
	for i := range 3 {
		if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: conv1, To: "lead", Data: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		node  string
		bound time.Duration
	}{{"n1", 2 * time.Second}, {"n2", redelivery}} {
		t.Run("to "+x.node, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), clientEnv+"="+server.URL)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for i := range 3 {
				if !lines.Scan() || lines.Text() != fmt.Sprint("took ", i) {
					t.Fatalf("the client says %q", lines.Text())
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			died := time.Now()
			var l eventstore.Lease
			for {
				if l, err = s.Claim(ctx, x.node, conv1.Partition()); !errors.Is(err, eventstore.ErrHeld) {
					break
				}
				<-time.After(50 * time.Millisecond)
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Receive(ctx, l)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for i := range 3 {
				expect(t, ctx, r, fmt.Sprint(i), nil)
			}
			took := time.Since(died)
			t.Logf("redelivered after %v", took)
			if took > x.bound {
				t.Errorf("redelivered after %v, the bound is %v", took, x.bound)
			}
			if err := s.Release(ctx, l); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// b53-poison-holds-nobody: a message that is never done, and one that is put off
// again and again, hold up none of a thousand others of their partition.
func TestPoisonHoldsNobody(t *testing.T) {
	t.Run("b53-poison-holds-nobody", func(t *testing.T) {
		ctx := patient(t)
		nc := natsdtest.Connect(t, natsdtest.Start(t))
		s := natsdtest.Open(t, nc, eventstore.Config{})
		l, err := s.Claim(ctx, "n1", conv1.Partition())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Receive(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		publish := func(text string) {
			if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: conv1, To: "lead", Data: []byte(text)}); err != nil {
				t.Error(err)
			}
		}
		publish("poison")
		poison, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		const good = 1000
		var publishing sync.WaitGroup
		for range 4 {
			publishing.Go(func() {
				for i := range good / 4 {
					publish(fmt.Sprint(i))
				}
			})
		}
		begun := time.Now()
		for i := range good {
			d, err := r.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if string(d.Envelope().Data) == "poison" {
				t.Fatal("the poison came again")
			}
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				if err := poison.Hold(); err != nil {
					t.Fatal(err)
				}
			}
		}
		publishing.Wait()
		t.Logf("%d good messages beside the poison took %v", good, time.Since(begun))
		// It is still there, for whoever comes next.
		if l, err = s.Claim(ctx, "n1", conv1.Partition()); err != nil {
			t.Fatal(err)
		}
		next, err := s.Receive(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		expect(t, ctx, next, "poison", func(d eventstore.Delivery) error { return d.Dead(ctx, "poison") })
		publish("after")
		expect(t, ctx, next, "after", nil)
	})
}

// A node that died between the steps of taking a partition's consumer over, at
// whichever, is not in the way of the next.
func TestConsumerTakeoverCutOff(t *testing.T) {
	ctx := patient(t)
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	s := natsdtest.Open(t, nc, eventstore.Config{})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	p := conv1.Partition()
	consumers := func() (names []string) {
		t.Helper()
		inbox, err := js.Stream(ctx, eventstore.StreamInbox)
		if err != nil {
			t.Fatal(err)
		}
		for name := range inbox.ConsumerNames(ctx).Name() {
			names = append(names, name)
		}
		return names
	}
	take := func(node string) (eventstore.Lease, eventstore.Receiver) {
		t.Helper()
		l, err := s.Claim(ctx, node, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Receive(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return l, r
	}
	if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: conv1, To: "lead", Data: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	_, r := take("n1")
	expect(t, ctx, r, "kept", nil)

	// It had claimed, and no more.
	if _, err := s.Claim(ctx, "n1", p); err != nil {
		t.Fatal(err)
	}
	_, r = take("n1")
	expect(t, ctx, r, "kept", nil)

	// It had deleted the old consumer, and not made its own.
	l, err := s.Claim(ctx, "n1", p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range consumers() {
		if err := js.DeleteConsumer(ctx, eventstore.StreamInbox, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(ctx); !errors.Is(err, eventstore.ErrPartitionLost) {
		t.Fatalf("the one before: %v", err)
	}
	_, r = take("n1")
	expect(t, ctx, r, "kept", nil)

	// One that had slept comes late with its steps.
	if late, err := s.Receive(ctx, l); !errors.Is(err, eventstore.ErrPartitionLost) {
		t.Fatalf("an old owner's takeover: %v, %v", late, err)
	}

	// Owners take over as fast as they can, each in the middle of the others.
	var leases []eventstore.Lease
	for range 6 {
		l, err := s.Claim(ctx, "n1", p)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	newest := leases[len(leases)-1]
	got := make([]eventstore.Receiver, len(leases))
	var all sync.WaitGroup
	for i, l := range leases {
		all.Go(func() {
			r, err := s.Receive(ctx, l)
			if err == nil {
				got[i] = r
			} else if !errors.Is(err, eventstore.ErrPartitionLost) || l == newest {
				t.Errorf("epoch %d: %v", l.Epoch, err)
			}
		})
	}
	all.Wait()
	for i, r := range got {
		if r == nil {
			continue
		}
		defer r.Close()
		if leases[i] == newest {
			expect(t, ctx, r, "kept", nil)
		}
	}
	if names := consumers(); len(names) != 1 || !strings.HasSuffix(names[0], fmt.Sprint("-", newest.Epoch)) {
		t.Errorf("consumers of the partition: %q, the newest epoch is %d", names, newest.Epoch)
	}
}
