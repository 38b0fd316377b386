package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// fullStore refuses what is published.
type fullStore struct {
	*memory.Store
	err error
}

func (s *fullStore) Publish(context.Context, eventstore.Envelope) (uint64, bool, error) {
	return 0, false, fmt.Errorf("publish: %w", s.err)
}

// versions follows a conversation until a version and returns those it was
// told, in order.
func (w *world) versions(key domain.Key, from, until uint64) []uint64 {
	w.t.Helper()
	var got []uint64
	err := w.client.Follow(w.context(), key.Conversation, from, func(u api.Update) error {
		if u.Commit == nil {
			return nil
		}
		got = append(got, u.Commit.GetVersion())
		if len(u.Lines) != len(u.Commit.GetEvents()) {
			w.t.Errorf("version %d has %d lines for %d events", u.Commit.GetVersion(), len(u.Lines), len(u.Commit.GetEvents()))
		}
		if u.Commit.GetVersion() >= until {
			return api.ErrStop
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func contiguous(t *testing.T, got []uint64, from, to uint64) {
	t.Helper()
	want := from
	for _, v := range got {
		if v != want {
			t.Fatalf("told versions %v, want %d to %d once each", got, from, to)
		}
		want++
	}
	if want != to+1 {
		t.Fatalf("told versions %v, want %d to %d", got, from, to)
	}
}

func line(v uint64) []byte {
	return fmt.Appendf(nil, `{"type":"event","version":%d,"event":"x"}`, v)
}

// Whatever the feed does, each version is told once and in order.
func TestFollow(t *testing.T) {
	const last = 40
	for name, feed := range map[string]func(publish func([]byte), v uint64){
		"no feed at all":  func(func([]byte), uint64) {},
		"faithful":        func(publish func([]byte), v uint64) { publish(line(v)) },
		"every other one": func(publish func([]byte), v uint64) { publish(line(v &^ 1)) },
		"twice":           func(publish func([]byte), v uint64) { publish(line(v)); publish(line(v)) },
		"backwards": func(publish func([]byte), v uint64) {
			for x := v; x > 0; x-- {
				publish(line(x))
			}
		},
		"ahead of the log": func(publish func([]byte), v uint64) { publish(line(v + 5)) },
		"garbage": func(publish func([]byte), v uint64) {
			for _, junk := range []string{"", "{", "null", `{"type":"event","version":-1}`, `{"type":"text","text":7}`, `{"type":7}`} {
				publish([]byte(junk))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			key := w.open("harbor")
			publisher := w.connect()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for v := uint64(2); v <= last; v++ {
					w.say(key, fmt.Sprint("word ", v))
					feed(func(data []byte) { _ = publisher.Publish(api.FeedSubject(key), data) }, v)
				}
			}()
			contiguous(t, w.versions(key, 1, last), 1, last)
			<-done
			contiguous(t, w.versions(key, 7, last), 7, last)
		})
	}
}

func TestFollowPassesTextOn(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	feed := api.NewFeed(w.nc, w.store, nil)
	defer feed.Close()
	from := model.Caller{Key: key, Member: "Lead", Run: "r1", Step: 1}
	var text string
	live := false
	err := w.client.Follow(w.context(), "harbor", 1, func(u api.Update) error {
		if u.Live && !live {
			live = true
			for _, piece := range []string{"Hel", "lo", " Ada"} {
				feed.Text(from, "lead", piece)
			}
		}
		if u.Text != nil {
			if u.Text.Member != "Lead" || u.Text.Run != "r1" || u.Text.Step != 1 || u.Text.Conversation != key.Conversation {
				t.Errorf("text line %+v", u.Text)
			}
			if text += u.Text.Text; text == "Hello Ada" {
				return api.ErrStop
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowEnds(t *testing.T) {
	w := newWorld(t)
	w.open("harbor")
	ctx, cancel := context.WithCancel(w.context())
	err := w.client.Follow(ctx, "harbor", 1, func(api.Update) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := errors.New("broken")
	if err := w.client.Follow(w.context(), "harbor", 1, func(api.Update) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("failed: %v", err)
	}
	refused(t, w.client.Follow(w.context(), "nowhere", 1, nil), "conversation-not-found")
}

// The feed carries the documented lines, with the names of members who joined
// before it was started.
func TestFeedLines(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor", "Backend")
	sub, err := w.nc.SubscribeSync("rollcall.feed.main.*")
	if err != nil {
		t.Fatal(err)
	}
	feed := api.NewFeed(w.nc, w.store, nil)
	defer feed.Close()
	if _, err := w.client.Send(w.context(), "harbor", words("m1", "hello")); err != nil {
		t.Fatal(err)
	}
	var last eventstore.Recorded
	if err := w.store.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error { last = r; return nil }); err != nil {
		t.Fatal(err)
	}
	feed.Committed(last)
	for range last.Commit.GetEvents() {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		var l api.EventLine
		if err := json.Unmarshal(m.Data, &l); err != nil {
			t.Fatal(err)
		}
		if m.Subject != api.FeedSubject(key) || l.Version != last.Commit.GetVersion() || l.Type != "event" {
			t.Errorf("line %s on %s", m.Data, m.Subject)
		}
	}
}

// A connection to a local node finds its successor on another port.
func TestDialSurvivesARestart(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	dir := w.nodeDir()
	c, err := api.Connect(api.Target{Dir: dir}, "main", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Poll = 20 * time.Millisecond
	moved := false
	err = c.Follow(w.context(), key.Conversation, 1, func(u api.Update) error {
		if !moved {
			moved = true
			w.move(dir)
			w.say(key, "from the new node")
			return nil
		}
		return api.ErrStop
	})
	if err != nil {
		t.Fatal(err)
	}
}

// move stops the server and the service and starts others elsewhere.
func (w *world) move(dir string) {
	w.t.Helper()
	if err := w.server.Close(); err != nil {
		w.t.Error(err)
	}
	w.nc.Close()
	w.nats.Shutdown()
	w.nats = natsdtest.Start(w.t)
	w.mu.Lock()
	w.nc = w.connect()
	w.mu.Unlock()
	w.serve(api.Config{})
	w.client = api.NewClient(w.nc, "main")
	if err := nodefile.Write(dir, nodefile.Info{PID: 2, URL: w.nats.URL, Token: natsdtest.Token}); err != nil {
		w.t.Fatal(err)
	}
}

func TestDialRefusals(t *testing.T) {
	dir := t.TempDir()
	refused(t, errOf(api.Dial(api.Target{Dir: dir}, "test")), "node-unreachable", "rollcall up")
	// Nobody listens where the last node did.
	if err := nodefile.Write(dir, nodefile.Info{PID: 1, URL: "nats://127.0.0.1:1", Token: "x"}); err != nil {
		t.Fatal(err)
	}
	refused(t, errOf(api.Dial(api.Target{Dir: dir}, "test")), "node-unreachable", "does not answer")
	r := refused(t, errOf(api.Dial(api.Target{URL: "nats://user:secret@127.0.0.1:1"}, "test")), "nats-unreachable", "NATS_URL")
	if s := r.Error(); len(s) == 0 || contains(s, "secret") {
		t.Errorf("the refusal tells the password: %s", s)
	}
	refused(t, errOf(api.Dial(api.Target{URL: "nats://127.0.0.1:1", NKey: dir + "/none"}, "test")), "credentials-unreadable")
	w := newWorld(t)
	if err := nodefile.Write(dir, nodefile.Info{PID: 1, URL: w.nats.URL, Token: "wrong"}); err != nil {
		t.Fatal(err)
	}
	refused(t, errOf(api.Dial(api.Target{Dir: dir}, "test")), "node-unreachable")
	nc, err := api.Dial(api.Target{URL: w.nats.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	nc.Close()
	<-closed
}

func contains(s, part string) bool {
	for i := range len(s) - len(part) + 1 {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}
