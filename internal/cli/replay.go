package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) replay() *cobra.Command {
	var speed float64
	var all bool
	var where source
	c := &cobra.Command{
		Use:   "replay CONV[@VERSION] [flags]",
		Short: "Tell the story of a conversation again, from its log",
		Long: `Replay tells what happened, with the texts in full, from the log alone: no model is
called. Its hashes are checked on the way, and the state it leads to is folded anew.
It reads from a node; from NATS itself with an auditor's credentials, or as --auditor;
or from a file of rollcall export.`,
		Example: `  rollcall replay harbor
  rollcall replay harbor --speed 10
  rollcall replay harbor@40 --all
  rollcall replay harbor --export harbor.jsonl`,
		GroupID: groupTime, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().Float64Var(&speed, "speed", 0, "times as fast as it was; 0: without waiting")
	c.Flags().BoolVar(&all, "all", false, "tell every event, also the small ones")
	where.flags(c)
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		if r.member != "" {
			return domain.Refuse("usage", "a story is of a whole conversation", "got /"+r.member, "rollcall log CONV/MEMBER prints what one did")
		}
		if !(speed >= 0) {
			return domain.Refuse("usage", "--speed cannot be negative", "", "10 is ten times as fast")
		}
		src, err := s.open(ctx, where)
		if err != nil {
			return err
		}
		return errors.Join(s.tell(ctx, src, where.tenant(), r, speed, all), src.Close())
	})
}

func (s *session) tell(ctx context.Context, src audit.Source, tenant string, r ref, speed float64, all bool) error {
	key, err := src.Find(ctx, tenant, r.conversation)
	if err != nil {
		return err
	}
	var commits []*rollcallv1.Commit
	if err := readLog(ctx, src, key, r.version, func(commit *rollcallv1.Commit) { commits = append(commits, commit) }); err != nil {
		return err
	}
	t := &storyTeller{s: s, from: src, key: key, teller: newTeller(), all: all}
	state := domain.New(key)
	for i, commit := range commits {
		if i > 0 && speed > 0 {
			gap := commit.GetTime().AsTime().Sub(commits[i-1].GetTime().AsTime())
			if err := rest(ctx, min(time.Duration(float64(gap)/speed), maxGap)); err != nil {
				return err
			}
		}
		state.Evolve(commit)
		if err := t.tell(ctx, commit); err != nil {
			return err
		}
	}
	end := replayEnd{
		Type: "replayed", Conversation: key.Conversation, Version: state.Version, StateHash: state.Hash(), Verdict: api.VerdictOf(state),
	}
	if s.flags.json {
		s.line(s.Out, end)
		return nil
	}
	s.say("replayed %s without a model call; state %s; verdict %s", count(end.Version, "version"), end.StateHash, verdictText(end.Verdict))
	return nil
}

// maxGap bounds a pause of the story: nobody wants to relive a night.
const maxGap = 3 * time.Second

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replayEnd is the last line of `replay --json`.
type replayEnd struct {
	Type         string      `json:"type"`
	Conversation string      `json:"conversation"`
	Version      uint64      `json:"version"`
	StateHash    string      `json:"state_hash"`
	Verdict      api.Verdict `json:"verdict"`
}

// storyTeller prints commits as a story.
type storyTeller struct {
	s      *session
	from   audit.Source
	key    domain.Key
	teller *teller
	all    bool
	begun  time.Time
}

func (t *storyTeller) tell(ctx context.Context, c *rollcallv1.Commit) error {
	at := c.GetTime().AsTime()
	if t.begun.IsZero() {
		t.begun = at
	}
	told := t.teller.hear(c)
	if t.s.flags.json {
		for _, l := range api.Render(t.key.Conversation, c, t.teller.names.Of) {
			t.s.line(t.s.Out, l)
		}
		return nil
	}
	for i, e := range c.GetEvents() {
		if told[i].quiet && !t.all {
			continue
		}
		fmt.Fprintf(t.s.Out, "%8s  %s\n", at.Sub(t.begun).Round(time.Millisecond), told[i])
		if err := t.inFull(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// inFull prints the whole text of a message or answer that did not fit into
// its line.
func (t *storyTeller) inFull(ctx context.Context, e *rollcallv1.Event) error {
	body := e.GetLeadReplied().GetText()
	if m := e.GetMessageDelivered(); m != nil {
		body = m.GetBody()
	}
	if body == nil {
		return nil
	}
	text, err := bodyOf(ctx, t.from, t.key, body)
	if err != nil {
		return err
	}
	if len([]rune(text)) <= textColumns && !strings.Contains(text, "\n") {
		return nil
	}
	indentLines(t.s.Out, strings.Repeat(" ", 25), text)
	return nil
}
