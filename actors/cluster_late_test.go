package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A commit that is under way for longer than its node's lease lasts arrives when
// another node has long gone on: after it has written the log refuses the late
// one, and before it the late one counts and the other goes on from there. Either
// way all is there once.
func TestB23CommitUnderWay(t *testing.T) {
	for _, late := range []time.Duration{6 * time.Second, 2 * eventstore.LeaseTTL, 6 * eventstore.LeaseTTL} {
		for _, of := range []string{"a message", "a reply", "a tool's outcome"} {
			t.Run(fmt.Sprintf("%s, %v late", of, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { commitUnderWay(t, late, of) })
			})
		}
	}
}

func commitUnderWay(t *testing.T, late time.Duration, of string) {
	gate := make(chan struct{})
	lathe := newDevice("lathe")
	lathe.idempotent = true
	c := newCluster(t, strict(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
		switch {
		case of == "a tool's outcome" && r.has("word") && r.called("lathe") == 0:
			return calls(call("lathe", `{}`), call("task_create", `{"title":"once","description":"x","owner":"user"}`)), nil
		case of == "a reply" && r.has("word"):
			return say("I heard."), until(ctx, gate)
		}
		return say("I heard."), nil
	}))
	c.extra = append(c.extra, lathe)
	first, second := c.pair()
	defer second.down()
	defer first.down()
	c.tell(openCommand("listen"))
	c.quiet()
	slow := func() {
		first.link.cut(hang)
		first.link.set(func(l *link) { l.late = late })
	}
	if of == "a message" {
		slow()
	}
	word := post("lead", "word.", rollcallv1.MailMode_MAIL_MODE_QUEUE)
	word.Id = "word"
	c.tell(word)
	switch of {
	case "a reply":
		c.until("it is asked", func(*domain.State) bool { return c.called(first.name) == 2 })
		slow()
		close(gate)
	case "a tool's outcome":
		c.until("it turns", func(*domain.State) bool { return len(lathe.calls()) == 1 })
		slow()
		lathe.end("turned")
	}
	c.owns(second.name)
	if of == "a tool's outcome" {
		go drainDevices(t.Context(), lathe)
	}
	<-time.After(late + 2*time.Minute)
	s := c.quiet()
	story := c.story()
	if n := strings.Count(story, `text:"word."`); n != 1 || len(s.Lead().Unread) > 0 || !strings.Contains(c.last(), "I heard.") {
		t.Errorf("the word is delivered %d times, %d are unread\n%s", n, len(s.Lead().Unread), story)
	}
	if want := strings.Count(story, `title:"once"`); of == "a tool's outcome" && (want != 1 || len(s.Tasks) != 1) {
		t.Errorf("the task was made %d times", want)
	}
	c.fenced(t)
	once(t, c.events())
	justified(t, c.events(), len(c.brain.record()))
	checkCalls(t, c.world, c.events(), 1)
	if c.called(second.name) == 0 {
		t.Error("the other node did nothing")
	}
}
