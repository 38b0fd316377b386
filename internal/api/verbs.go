package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/projections"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Open opens a conversation. Without an id of its own it gets a new one.
func (c *Client) Open(ctx context.Context, o *rollcallv1.OpenConversation) (AnswerBody, error) {
	if o.GetConversation() == "" {
		o.Conversation = NewID()
	}
	return c.do(ctx, "", &rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: o}})
}

// Send delivers mail from outside; p.To is an id, a display name or a unique
// prefix, empty for the Lead.
func (c *Client) Send(ctx context.Context, conversation string, p *rollcallv1.PostMessage) (AnswerBody, error) {
	if err := CheckText("the message", p.GetBody().GetText(), MaxText); err != nil {
		return AnswerBody{}, err
	}
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: p}})
}

// ChangeTask is the operator's hand on the board.
func (c *Client) ChangeTask(ctx context.Context, conversation string, t *rollcallv1.ChangeTask) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_ChangeTask{ChangeTask: t}})
}

// Interrupt aborts the open run of a member; empty: the Lead's.
func (c *Client) Interrupt(ctx context.Context, conversation, member string) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_InterruptMember{
		InterruptMember: &rollcallv1.InterruptMember{Member: member},
	}})
}

// Pause lets no new step start.
func (c *Client) Pause(ctx context.Context, conversation string) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{
		PauseConversation: &rollcallv1.PauseConversation{},
	}})
}

// Resume goes on after a pause.
func (c *Client) Resume(ctx context.Context, conversation string) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{
		ResumeConversation: &rollcallv1.ResumeConversation{},
	}})
}

// Retry makes held mail due again; an empty member is every held one.
func (c *Client) Retry(ctx context.Context, conversation, member string) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{
		RetryMember: &rollcallv1.RetryMember{Member: member},
	}})
}

// Dissolve ends the active team.
func (c *Client) Dissolve(ctx context.Context, conversation string) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{
		DissolveTeam: &rollcallv1.DissolveTeam{},
	}})
}

// RaiseBudget sets the limits that are not zero.
func (c *Client) RaiseBudget(ctx context.Context, conversation string, b *rollcallv1.Budget) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_RaiseBudget{
		RaiseBudget: &rollcallv1.RaiseBudget{Budget: b},
	}})
}

// List lists the tenant's conversations.
func (c *Client) List(ctx context.Context) (ListAnswer, error) {
	return read[ListAnswer](ctx, c, "ls", ReadRequest{})
}

// Show reads a conversation in full.
func (c *Client) Show(ctx context.Context, r ReadRequest) (Detail, error) {
	return read[Detail](ctx, c, "show", r)
}

// Roll calls the roll of one conversation, or of all when r names none. When
// the node needs longer than one request may take, it is asked again: who was
// rebuilt to answer is there then.
func (c *Client) Roll(ctx context.Context, r ReadRequest) (RollAnswer, error) {
	for {
		got, err := read[RollAnswer](ctx, c, "roll", r)
		if refused, ok := errors.AsType[*domain.Refusal](err); !ok || refused.Code != "timed-out" || ctx.Err() != nil {
			return got, err
		}
	}
}

// Mail reads messages, the newest ones.
func (c *Client) Mail(ctx context.Context, r MailRequest) (MailAnswer, error) {
	return read[MailAnswer](ctx, c, "mail", r)
}

// Files lists files.
func (c *Client) Files(ctx context.Context, r ReadRequest) (FilesAnswer, error) {
	return read[FilesAnswer](ctx, c, "files", r)
}

// Usage reads what a conversation's model calls used.
func (c *Client) Usage(ctx context.Context, r ReadRequest) (UsageAnswer, error) {
	return read[UsageAnswer](ctx, c, "usage", r)
}

// Doctor has the node examine itself.
func (c *Client) Doctor(ctx context.Context) (DoctorAnswer, error) {
	return read[DoctorAnswer](ctx, c, "doctor", ReadRequest{})
}

// Info asks which node answers.
func (c *Client) Info(ctx context.Context) (InfoAnswer, error) {
	return read[InfoAnswer](ctx, c, "info", ReadRequest{})
}

// Blob reads stored bytes whole and checks their hash.
func (c *Client) Blob(ctx context.Context, conversation string, ref BlobRef) ([]byte, error) {
	var out []byte
	for {
		chunk, err := read[BlobAnswer](ctx, c, "blob", BlobRequest{
			Conversation: conversation, BlobRef: ref, Offset: uint64(len(out)),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, chunk.Data...)
		if !chunk.More {
			break
		}
	}
	if sum := sha256.Sum256(out); hex.EncodeToString(sum[:]) != ref.SHA256 {
		return nil, fmt.Errorf("read stored bytes %s: %w", ref.SHA256, domain.ErrHash)
	}
	return out, nil
}

// Text is a text of a document, fetched where it is stored apart.
func (c *Client) Text(ctx context.Context, conversation string, t projections.Text) (string, error) {
	if t.Blob == nil {
		return t.Text, nil
	}
	data, err := c.Blob(ctx, conversation, BlobRef(*t.Blob))
	return string(data), err
}

// BodyText is a text of the log, fetched where it is stored apart.
func (c *Client) BodyText(ctx context.Context, conversation string, b *rollcallv1.Body) (string, error) {
	if b.GetBlob() == nil {
		return b.GetText(), nil
	}
	data, err := c.Blob(ctx, conversation, BlobRef{SHA256: b.GetBlob().GetSha256(), Size: b.GetBlob().GetSize()})
	return string(data), err
}

// Upload stores bytes for a conversation, which need not be open yet but must
// be named by its full id.
func (c *Client) Upload(ctx context.Context, conversation string, data []byte) (*rollcallv1.Blob, error) {
	sum := sha256.Sum256(data)
	ref := BlobRef{SHA256: hex.EncodeToString(sum[:]), Size: uint64(len(data))}
	// A node that is lost half-way has lost the chunks: start again.
	for {
		err := c.upload(ctx, conversation, ref, data)
		if err == nil {
			return &rollcallv1.Blob{Sha256: ref.SHA256, Size: ref.Size}, nil
		}
		if code := AsRefusal(err).Code; code != "upload-lost" && code != "node-unreachable" || ctx.Err() != nil {
			return nil, err
		}
		if _, err := c.Info(ctx); err != nil {
			return nil, err
		}
	}
}

func (c *Client) upload(ctx context.Context, conversation string, ref BlobRef, data []byte) error {
	verb := "upload"
	for offset := 0; ; {
		end := min(len(data), offset+chunkBytes)
		got, err := read[UploadAnswer](ctx, c, verb, UploadRequest{
			Conversation: conversation, BlobRef: ref, Offset: uint64(offset), Data: data[offset:end],
		})
		if err != nil || got.Stored {
			return err
		}
		offset = end
		if prefix := prefixAPI + c.tenant + "."; len(got.Next) > len(prefix) {
			verb = got.Next[len(prefix):]
		}
	}
}

// Log reads sealed commits from a version on to the end of the log, page by
// page, and calls fn with each until it fails; ErrStop ends it with nil. It returns the conversation's
// key as soon as that is known, also with an error.
func (c *Client) Log(ctx context.Context, conversation string, from uint64, fn func(raw []byte) error) (domain.Key, error) {
	var key domain.Key
	for {
		page, err := c.logPage(ctx, conversation, from, 0)
		if err != nil {
			return key, err
		}
		key = domain.Key{Tenant: page.GetTenant(), Conversation: page.GetConversation()}
		conversation = key.Conversation
		for _, raw := range page.GetCommits() {
			if err := fn(raw); errors.Is(err, ErrStop) {
				return key, nil
			} else if err != nil {
				return key, err
			}
		}
		from = max(from, 1) + uint64(len(page.GetCommits()))
		if !page.GetMore() {
			return key, nil
		}
	}
}

func (c *Client) logPage(ctx context.Context, conversation string, from uint64, limit uint32) (*rollcallv1.LogPage, error) {
	data, err := proto.Marshal(&rollcallv1.LogRequest{Conversation: conversation, From: from, Limit: limit})
	if err != nil {
		return nil, textRefusal("the conversation's name", err)
	}
	body, err := c.request(ctx, "log", data, true)
	if err != nil {
		return nil, err
	}
	page := new(rollcallv1.LogPage)
	if err := proto.Unmarshal(body, page); err != nil {
		return nil, fmt.Errorf("read a page of the log: %w", err)
	}
	return page, nil
}

// LogJSON reads one page of the log as JSON lines of events.
func (c *Client) LogJSON(ctx context.Context, r LogRequest) (LogAnswer, error) {
	return read[LogAnswer](ctx, c, "log", r)
}
