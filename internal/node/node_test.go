package node_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/node"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { natsdtest.VerifyTestMain(m) }

// start brings up a node in dir, closed with the test or by the returned
// function.
func start(t *testing.T, dir, modelURL string) (n *node.Node, stop func()) {
	t.Helper()
	level := slog.LevelWarn
	if os.Getenv("ROLLCALL_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	n, err := node.Start(t.Context(), node.Config{
		Settings: &config.Settings{Data: dir, SyncAlways: true, Model: "scripted", BaseURL: modelURL, Key: config.NewSecret(ulid.Make().String())},
		Version:  "0.0.0-test",
		Log:      slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		t.Fatal(err)
	}
	at := n.Address()
	at.PID = os.Getpid()
	if err := nodefile.Write(dir, at); err != nil {
		t.Fatal(err)
	}
	return n, closing(t, n)
}

// closing closes a node with the test, or when it is called.
func closing(t *testing.T, n *node.Node) (stop func()) {
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// serve is a model server for the test.
func serve(t *testing.T, script *scripted.Script) *scripted.Server {
	t.Helper()
	models, err := scripted.Start(script, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = models.Close() })
	return models
}

// greeter is a model server that always says hello.
func greeter(t *testing.T) *scripted.Server {
	t.Helper()
	script, err := scripted.Parse("hello.yaml", []byte("rules: [{text: hello}]"))
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, script)
}

func client(t *testing.T, dir string) *api.Client {
	t.Helper()
	nc, err := api.Dial(api.Target{Dir: dir}, "test")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() { nc.Close(); <-closed })
	return api.NewClient(nc, "main")
}

// A node started in an empty directory runs the demo's team to its end.
func TestProfileOnOneNode(t *testing.T) {
	models := serve(t, demo.Script())
	dir := t.TempDir()
	start(t, dir, models.URL())
	c := client(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := strings.ToLower(ulid.Make().String())
	_, err := c.Open(ctx, &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: "profile", Contract: "mailbox",
		Objective: &rollcallv1.Body{Text: demo.Objective(demo.SendUpdate, demo.NewField)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	err = c.Follow(ctx, id, 1, func(u api.Update) error {
		for _, e := range u.Commit.GetEvents() {
			if r := e.GetLeadReplied(); r != nil {
				answer = r.GetText().GetText()
			}
		}
		if strings.Contains(answer, "Ada") {
			return api.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err, answer)
	}
	var sealed [][]byte
	key, err := c.Log(ctx, id, 1, func(raw []byte) error {
		sealed = append(sealed, raw)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := audit.Check(key, sealed, nil)
	r.Compare(models.Requests())
	if len(r.Problems) > 0 || r.Requests != len(models.Requests()) {
		t.Errorf("%d of %d requests computed again, %v", r.Requests, len(models.Requests()), r.Problems)
	}
}
