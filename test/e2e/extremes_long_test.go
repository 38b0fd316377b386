package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestInputLongLog: one conversation of 60,000 commits, as a real node and the
// command line meet it: it answers, and log, show, mail and verify read all.
func TestInputLongLog(t *testing.T) {
	t.Parallel()
	commits := 2_000
	if os.Getenv("ROLLCALL_SOAK") != "" {
		commits = 60_000
	}
	p := newPlace(t, script(t, "rules: [{name: on, text: I am on.}]\n"))
	p.start()
	id := p.write(commits)
	p.damages("commit-id", "answered") // no model answered what is written there, and it has few headers
	c := p.client()
	p.ok("send", id, "Still there?", "--wait")
	s := p.state(c, id)
	if asked := p.asked(id, "Lead"); len(asked) != 1 || len(asked[0].Body) > 1<<20 || times(t, asked[0], "Still there?") != 1 {
		t.Errorf("the Lead was asked %d times", len(asked))
	}
	if s.Version <= uint64(commits) || !quiet(s) {
		t.Errorf("the log went to version %d", s.Version)
	}
	events := 0
	for range strings.Lines(p.ok("log", id)) {
		events++
	}
	if want := len(p.events(c, id)); events != want {
		t.Errorf("log prints %d lines of %d events", events, want)
	}
	if got := document[api.Detail](p, "show", id); got.Version != s.Version || got.Hash == "" {
		t.Errorf("show is at version %d, the log at %d", got.Version, s.Version)
	}
	if got := document[api.MailAnswer](p, "mail", id, "--limit", strconv.Itoa(commits)); len(got.Messages) != int(s.LastMessage) {
		t.Errorf("mail prints %d of %d messages", len(got.Messages), s.LastMessage)
	}
	p.ok("show", fmt.Sprintf("%s@%d", id, commits/2))
	if mib := p.memory(); mib > roomy {
		t.Errorf("the node took %d MiB", mib)
	} else {
		t.Logf("the node took %d MiB", mib)
	}
}

// write puts a conversation of so many commits onto the log of the running
// node, as the node itself would have written them, and returns its id.
func (p *place) write(commits int) string {
	p.t.Helper()
	nc := p.nats()
	js := got(jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))).must(p.t)
	key := domain.Key{Tenant: "main", Conversation: api.NewID()}
	at := eventstore.Position{}
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "scripted"}
	domaintest.Long(p.t, key, rules, commits, func(c *rollcallv1.Commit) {
		raw := got(eventstore.SealAfter(key, at, c)).must(p.t)
		m := nats.NewMsg(eventstore.EventSubject(key))
		m.Data = raw
		m.Header.Set("Rollcall-Version", strconv.FormatUint(c.GetVersion(), 10))
		m.Header.Set(eventstore.HeaderMsgID, c.GetId())
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(patience)); err != nil {
			p.t.Fatal(err)
		}
		at = eventstore.Position{Version: c.GetVersion(), Hash: c.GetHash()}
	})
	select {
	case <-js.PublishAsyncComplete():
	case <-p.ctx().Done():
		p.t.Fatal("the log is not written")
	}
	return key.Conversation
}
