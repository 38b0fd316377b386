// Package mail holds mail_read: it shows a member the mail that it consumed,
// again or for the first time. A frame is bounded, a mailbox is not; what a
// frame leaves out is read with this tool.
package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/prompt"
	"github.com/rollcall-dev/rollcall/internal/schema"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Bounds of one answer in bytes: below maxShown it reaches the model whole.
const (
	maxShown = 24 << 10
	// maxEach is what each of several messages shows.
	maxEach = 4 << 10
	// page is how many messages are fetched at once.
	page = 200
)

// Store is what the tool reads: the part of eventstore.Store that is needed.
type Store interface {
	At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error)
	GetBlob(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error)
}

type readArgs struct {
	Message string `json:"message,omitempty" jsonschema:"one message to read whole, by its id such as msg12"`
	Offset  int    `json:"offset,omitempty" jsonschema:"with message: the byte to go on from"`
	After   string `json:"after,omitempty" jsonschema:"read the messages that came after this one; without it, from the oldest"`
	From    string `json:"from,omitempty" jsonschema:"only the messages of this sender"`
}

type readMail struct {
	store Store
	args  schema.Args[readArgs]
}

// New makes the tool over a store.
func New(store Store) tool.Tool { return readMail{store, schema.For[readArgs]()} }

// Definition implements tool.Tool.
func (t readMail) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{
		Name:        domain.ReadMail,
		Description: "Read your own mail: messages that a frame did not show, or showed only the beginning of. Reading it tells nobody.",
		Schema:      t.args.JSON(), Idempotent: true,
	}
}

// Call implements tool.Tool.
func (t readMail) Call(ctx context.Context, plan domain.ToolPlan, raw json.RawMessage) (tool.Outcome, error) {
	args, err := t.args.Read(raw)
	if err != nil {
		return mistake("%v", err), nil
	}
	var out tool.Outcome
	if args.Message != "" {
		out, err = t.whole(ctx, plan, args)
	} else {
		out, err = t.several(ctx, plan, args)
	}
	switch {
	case errors.Is(err, eventstore.ErrMissingBlob), errors.Is(err, domain.ErrHash), errors.Is(err, prompt.ErrMissing):
		return mistake("this mail cannot be read: %v", err), nil // no retry brings it back
	case err != nil:
		return tool.Outcome{}, fmt.Errorf("%s of %s: %w", domain.ReadMail, plan.Member.Name, err)
	}
	return out, nil
}

func mistake(format string, args ...any) tool.Outcome {
	return tool.Outcome{Output: fmt.Sprintf(format, args...), Error: true}
}

// find is the index of a message in the member's mail.
func find(plan domain.ToolPlan, id string) (int, bool) {
	i := slices.IndexFunc(plan.Mail, func(m *rollcallv1.MessageRef) bool { return m.GetMessage() == strings.TrimSpace(id) })
	return i, i >= 0
}

func unknown(plan domain.ToolPlan, id string) tool.Outcome {
	if len(plan.Mail) == 0 {
		return mistake("you have read no mail yet.")
	}
	return mistake("there is no message %q among the mail that you consumed and that your transcript still holds; you can read %d messages from %s to %s.",
		id, len(plan.Mail), plan.Mail[0].GetMessage(), plan.Mail[len(plan.Mail)-1].GetMessage())
}

func (t readMail) whole(ctx context.Context, plan domain.ToolPlan, args readArgs) (tool.Outcome, error) {
	i, ok := find(plan, args.Message)
	if !ok {
		return unknown(plan, args.Message), nil
	}
	consumed, err := t.fetch(ctx, plan, plan.Mail[i:i+1])
	if err != nil {
		return tool.Outcome{}, err
	}
	frame, more, err := consumed.Whole(plan.Mail[i], args.Offset, maxShown)
	if err != nil {
		return tool.Outcome{}, err
	}
	if more > 0 {
		frame += fmt.Sprintf("\n%d bytes of it come after these: go on with offset.", more)
	}
	return tool.Outcome{Output: frame}, nil
}

// several shows the messages after one, as many as fit. Of a long mailbox only
// the pages that are needed are fetched.
func (t readMail) several(ctx context.Context, plan domain.ToolPlan, args readArgs) (tool.Outcome, error) {
	at := 0
	if args.After != "" {
		i, ok := find(plan, args.After)
		if !ok {
			return unknown(plan, args.After), nil
		}
		at = i + 1
	}
	for at < len(plan.Mail) {
		some := plan.Mail[at:min(at+page, len(plan.Mail))]
		consumed, err := t.fetch(ctx, plan, some)
		if err != nil {
			return tool.Outcome{}, err
		}
		frame, last, err := consumed.Some(some, args.From, maxEach, maxShown)
		if err != nil {
			return tool.Outcome{}, err
		}
		at += last
		if frame == "" {
			continue
		}
		if at < len(plan.Mail) {
			frame += fmt.Sprintf("\n%d messages came after these: go on with after=%q.", len(plan.Mail)-at, plan.Mail[at-1].GetMessage())
		}
		return tool.Outcome{Output: frame}, nil
	}
	switch {
	case args.From != "":
		return mistake("there is no mail of %q to read; the senders are names as the frame shows them.", args.From), nil
	case args.After != "":
		return tool.Outcome{Output: "There is no mail after " + args.After + "."}, nil
	}
	return tool.Outcome{Output: "You have read no mail yet."}, nil
}

func (t readMail) fetch(ctx context.Context, plan domain.ToolPlan, mail []*rollcallv1.MessageRef) (prompt.Consumed, error) {
	commits, err := t.store.At(ctx, plan.Key, prompt.Versions(mail))
	if err != nil {
		return prompt.Consumed{}, err
	}
	return prompt.Consumed{Names: plan.Names, Source: prompt.Commits{
		ByVersion: commits,
		Blob:      func(b *rollcallv1.Blob) ([]byte, error) { return t.store.GetBlob(ctx, plan.Key, b) },
	}}, nil
}
