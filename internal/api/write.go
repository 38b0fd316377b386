package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// writeRequest is a write, whatever its encoding was.
type writeRequest struct {
	// conversation is an id, a name or a unique prefix.
	conversation string
	command      *rollcallv1.Command
	patience     time.Duration
}

// NewID is a fresh lower-case ULID, for conversations and commands.
func NewID() string {
	return strings.ToLower(ulid.MustNew(ulid.Now(), rand.Reader).String())
}

// decodeWrite reads a write in either encoding. In protobuf the command's kind
// must be the verb's: an outsider cannot slip in the outcome of a run.
func decodeWrite(v verb, data []byte, binary bool) (writeRequest, error) {
	if !binary {
		return v.write(data)
	}
	req := new(rollcallv1.CommandRequest)
	if err := proto.Unmarshal(data, req); err != nil {
		return writeRequest{}, badProtobuf("rollcall.v1.CommandRequest", err)
	}
	if got := verbOf(req.GetCommand()); got != v.name {
		return writeRequest{}, domain.Refuse("request-invalid", "the command is not one of the verb "+v.name,
			"it is one of "+orNone(got), "publish it to the verb of its kind")
	}
	return writeRequest{
		conversation: req.GetConversation(), command: req.GetCommand(),
		patience: time.Duration(req.GetTimeoutMs()) * time.Millisecond,
	}, nil
}

func orNone(s string) string {
	if s == "" {
		return "no verb"
	}
	return s
}

// verbOf is the verb that carries a command; empty for what is not for
// outsiders.
func verbOf(c *rollcallv1.Command) string {
	switch c.GetKind().(type) {
	case *rollcallv1.Command_OpenConversation:
		return "open"
	case *rollcallv1.Command_PostMessage:
		return "send"
	case *rollcallv1.Command_ChangeTask:
		return "task"
	case *rollcallv1.Command_InterruptMember:
		return "interrupt"
	case *rollcallv1.Command_PauseConversation:
		return "pause"
	case *rollcallv1.Command_ResumeConversation:
		return "resume"
	case *rollcallv1.Command_RetryMember:
		return "retry"
	case *rollcallv1.Command_DissolveTeam:
		return "dissolve"
	case *rollcallv1.Command_DecideApproval:
		if c.GetDecideApproval().GetApprove() {
			return "approve"
		}
		return "deny"
	case *rollcallv1.Command_RaiseBudget:
		return "budget"
	}
	return ""
}

// write publishes the command and waits for what becomes of it.
func (s *Server) write(ctx context.Context, tenant string, req writeRequest) (*rollcallv1.Answer, error) {
	// Until it is published nothing of the command is stored.
	before, cancel := context.WithTimeout(ctx, max(req.patience, s.cfg.Patience))
	defer cancel()
	key, err := s.target(before, tenant, req)
	if err != nil {
		return nil, inTime("the conversation could not be looked up: nothing was stored", err)
	}
	cmd := req.command
	cmd.Actor = domain.Operator
	if cmd.GetId() == "" {
		cmd.Id = NewID()
	}
	if err := s.storeLongTexts(before, key, cmd); err != nil {
		return nil, inTime("the command could not be stored", err)
	}
	data, err := proto.Marshal(cmd)
	if err != nil {
		return nil, textRefusal("the request", err)
	}
	patience := req.patience
	if patience <= 0 {
		patience = s.cfg.Patience
	}
	reply, answered, done := s.answers.expect()
	defer done()
	err = s.store(ctx, patience, eventstore.Envelope{
		Key: key, To: "_", Data: data,
		Header: map[string]string{
			eventstore.HeaderContentType: contentProtobuf,
			eventstore.HeaderID:          cmd.GetId(),
			eventstore.HeaderReply:       reply,
		},
	})
	switch {
	case errors.Is(err, eventstore.ErrInboxFull):
		return nil, domain.Refuse("inbox-full", "nothing can be taken in at the moment",
			"the inbox holds as much unfinished work as it may", "wait until some is done, or run rollcall doctor")
	case errors.Is(err, eventstore.ErrTooLarge):
		return nil, domain.Refuse("text-too-long", "the request is larger than an inbox message may be",
			fmt.Sprintf("%d KiB, the limit is %d KiB", len(data)>>10, eventstore.MaxInbox>>10),
			"put long texts into a file and give it with --input")
	case err != nil:
		return nil, fmt.Errorf("store the command of conversation %s: %w", key.Conversation, err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answered:
		if err := refusalError(a.GetRefusal()); err != nil {
			return nil, err
		}
		a.Conversation, a.Command = key.Conversation, cmd.GetId()
		return a, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	// It is stored and will be decided; the same id may be sent again to learn
	// the outcome.
	return &rollcallv1.Answer{Conversation: key.Conversation, Command: cmd.GetId(), Accepted: true}, nil
}

// store puts a command into the inbox. What became of an attempt without an
// answer nobody knows, so it is made again: the command's id keeps it from being
// done twice. When the time is over, only a command that no attempt can have
// brought there is said not to be stored.
func (s *Server) store(ctx context.Context, patience time.Duration, e eventstore.Envelope) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	perhaps := false
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		_, _, err := s.cfg.Store.Publish(limit, e)
		switch {
		case err == nil, errors.Is(err, eventstore.ErrTooLarge):
			return err
		case errors.Is(err, eventstore.ErrInboxFull) && !perhaps:
			return err
		case !errors.Is(err, eventstore.ErrInboxFull) && !unsent(err):
			perhaps = true
		}
		select {
		case <-time.After(wait):
		case <-limit.Done():
			switch {
			case ctx.Err() != nil: // this node stops: another is asked, with the same id
				return ctx.Err()
			case perhaps:
				return outcomeUnknown("it was sent to the NATS servers, and they did not acknowledge it in time")
			}
			return domain.Refuse(unavailable, "the command could not be stored", reason(err), tryLater)
		}
	}
}

// target finds the conversation, which must exist unless it is being opened,
// and turns the names that the command uses into ids.
func (s *Server) target(ctx context.Context, tenant string, req writeRequest) (domain.Key, error) {
	if o := req.command.GetOpenConversation(); o != nil {
		if o.GetConversation() == "" {
			o.Conversation = NewID()
		}
		if _, err := ulid.ParseStrict(strings.ToUpper(o.GetConversation())); err != nil || o.GetConversation() != strings.ToLower(o.GetConversation()) {
			return domain.Key{}, domain.Refuse("id-invalid", "the conversation's id is not a lower-case ULID",
				fmt.Sprintf("%q", o.GetConversation()), "leave it out: the answer names a new one")
		}
		o.Tenant = tenant
		return domain.Key{Tenant: tenant, Conversation: o.GetConversation()}, nil
	}
	key, err := s.resolve(ctx, tenant, req.conversation)
	if err != nil {
		return domain.Key{}, err
	}
	member := memberField(req.command)
	if member == nil || *member == "" { // the Lead, or for retry every member
		return key, s.mustExist(ctx, key)
	}
	return key, s.confirmed(ctx, key, s.folds.use(ctx, key, 0, func(f *fold) error {
		id, err := f.member(*member)
		*member = id
		return err
	}))
}

// memberField is where a command names its member; nil when it names none.
func memberField(c *rollcallv1.Command) *string {
	switch k := c.GetKind().(type) {
	case *rollcallv1.Command_PostMessage:
		return &k.PostMessage.To
	case *rollcallv1.Command_InterruptMember:
		return &k.InterruptMember.Member
	case *rollcallv1.Command_RetryMember:
		return &k.RetryMember.Member
	}
	return nil
}

// storeLongTexts puts bodies over the inline limit into the object store, so
// that the command stays small.
func (s *Server) storeLongTexts(ctx context.Context, key domain.Key, c *rollcallv1.Command) error {
	for _, body := range []*rollcallv1.Body{c.GetOpenConversation().GetObjective(), c.GetPostMessage().GetBody()} {
		if body == nil || body.GetBlob() != nil {
			continue
		}
		if err := CheckText("the text", body.GetText(), MaxText); err != nil {
			return err
		}
		if err := eventstore.StoreBody(ctx, s.cfg.Store, key, body); err != nil {
			return fmt.Errorf("store a text of conversation %s: %w", key.Conversation, err)
		}
	}
	return nil
}
