package actors

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/prompt"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// inline wraps text; nil when there is none.
func inline(s string) *rollcallv1.Body {
	if s == "" {
		return nil
	}
	return &rollcallv1.Body{Text: domain.Clean(s)}
}

// storeBodies puts every body over InlineBody into the object store and its
// address into the command, before anything is decided.
func (rt *runtime) storeBodies(ctx context.Context, key domain.Key, cmd *rollcallv1.Command) error {
	var bodies []*rollcallv1.Body
	switch k := cmd.GetKind().(type) {
	case *rollcallv1.Command_PostMessage:
		bodies = append(bodies, k.PostMessage.GetBody())
	case *rollcallv1.Command_OpenConversation:
		bodies = append(bodies, k.OpenConversation.GetObjective())
	case *rollcallv1.Command_RecordReply:
		bodies = append(bodies, k.RecordReply.GetText(), k.RecordReply.GetReasoning())
		for _, c := range k.RecordReply.GetCalls() {
			if len(c.GetArguments()) <= eventstore.InlineBody {
				continue
			}
			blob, err := rt.Store.PutBlob(ctx, key, []byte(c.GetArguments()))
			if err != nil {
				return err
			}
			c.Arguments, c.ArgumentsBlob = "", blob
		}
	case *rollcallv1.Command_RecordToolOutcome:
		bodies = append(bodies, k.RecordToolOutcome.GetOutput())
	}
	for _, b := range bodies {
		if err := eventstore.StoreBody(ctx, rt.Store, key, b); err != nil {
			return err
		}
	}
	return nil
}

// checkBodies refuses a command from outside that names a body which is not
// in the object store, or no text: it would fail every request that shows it.
func (rt *runtime) checkBodies(ctx context.Context, key domain.Key, cmd *rollcallv1.Command) error {
	body := cmd.GetPostMessage().GetBody()
	if o := cmd.GetOpenConversation(); o != nil {
		body = o.GetObjective()
	}
	if body.GetBlob() == nil {
		return nil
	}
	const refused, try = "the message is not taken in", "send it again: rollcall stores long text before it sends its message"
	data, err := rt.Store.GetBlob(ctx, key, body.GetBlob())
	switch {
	case errors.Is(err, eventstore.ErrMissingBlob), errors.Is(err, domain.ErrHash):
		return domain.Refuse("text-invalid", refused, "the body that it names is not stored", try)
	case err != nil:
		return err
	case string(data) != domain.Clean(string(data)):
		return domain.Refuse("text-invalid", refused, "its body is not valid UTF-8, or contains a NUL character", "send it as a file with --input")
	}
	return nil
}

func readArguments(ctx context.Context, blobs eventstore.Blobs, key domain.Key, c *rollcallv1.ToolCall) (string, error) {
	if c.GetArgumentsBlob() == nil {
		return c.GetArguments(), nil
	}
	data, err := getBlob(ctx, blobs, key, c.GetArgumentsBlob())
	return string(data), err
}

// getBlob waits out short faults. A missing or broken body is final.
func getBlob(ctx context.Context, blobs eventstore.Blobs, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	retry := delays(50*time.Millisecond, 2*time.Second)
	for {
		data, err := blobs.GetBlob(ctx, key, b)
		if err == nil || ctx.Err() != nil || errors.Is(err, eventstore.ErrMissingBlob) || errors.Is(err, domain.ErrHash) {
			return data, err
		}
		pause(ctx, retry())
	}
}

// buildRequest fetches what the plan refers to and renders it.
func buildRequest(ctx context.Context, store eventstore.Store, p domain.StepPlan) (model.Request, error) {
	retry := delays(50*time.Millisecond, 2*time.Second)
	for {
		commits, err := store.At(ctx, p.Key, prompt.Needs(p))
		switch {
		case err == nil:
			return prompt.Build(p, prompt.Commits{ByVersion: commits, Blob: func(b *rollcallv1.Blob) ([]byte, error) {
				return getBlob(ctx, store, p.Key, b)
			}})
		case ctx.Err() != nil, errors.Is(err, eventstore.ErrNotFound), errors.Is(err, domain.ErrHash), errors.Is(err, domain.ErrGap):
			return model.Request{}, err
		}
		pause(ctx, retry())
	}
}
