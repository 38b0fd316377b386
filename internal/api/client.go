package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Client asks the service. It is safe for concurrent use and starts no
// goroutine of its own.
type Client struct {
	nc     *nats.Conn
	owned  bool
	tenant string
	// Patience is how long a request waits for a node to be there at all;
	// FollowPatience the same for Follow, which outlives a node that is being
	// restarted. 0: as long as the context lets it.
	Patience       time.Duration
	FollowPatience time.Duration
	// Poll is how often Follow asks for what the feed may have lost.
	Poll time.Duration
}

// NewClient is a client of one tenant. It does not own nc.
func NewClient(nc *nats.Conn, tenant string) *Client {
	return &Client{nc: nc, tenant: tenant, Patience: 3 * time.Second, FollowPatience: 30 * time.Second, Poll: 2 * time.Second}
}

// Close ends the connection, if Connect made it.
func (c *Client) Close() {
	if c.owned {
		c.nc.Close()
	}
}

// Tenant that the client asks for.
func (c *Client) Tenant() string { return c.tenant }

const (
	// attempt is how long one try of a request waits for its answer. A write
	// answers within Patience of the server; what is lost is tried again, which
	// its id makes harmless.
	attempt = 2*Patience + 7*time.Second
	// silence is how long a node that works on a request may say nothing. Then it
	// is taken for dead, and another is asked.
	silence = 3*working + working/2
	// silences are how often that may happen to one request.
	silences = 5
)

// request asks until somebody answers. The error is a *domain.Refusal or the
// context's.
func (c *Client) request(ctx context.Context, verb string, data []byte, binary bool) ([]byte, error) {
	return c.ask(ctx, prefixAPI+c.tenant+"."+verb, data, binary)
}

func (c *Client) ask(ctx context.Context, subject string, data []byte, binary bool) ([]byte, error) {
	if int64(len(data)) > c.nc.MaxPayload() {
		return nil, domain.Refuse("text-too-long", "the request is larger than a NATS message may be",
			fmt.Sprintf("%d KiB, the limit is %d KiB", len(data)>>10, c.nc.MaxPayload()>>10),
			"put long texts into a file and give it with --input")
	}
	began, silent, perhaps := time.Now(), 0, false
	lost := func(err error) error {
		if perhaps {
			return takenError{err}
		}
		return err
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		body, err := c.try(ctx, subject, data, binary)
		if err == nil {
			return body, nil
		}
		if errors.Is(err, errSilent) && silent < silences {
			silent++
			began = time.Now() // it was there to take the request
		}
		perhaps = perhaps || errors.Is(err, errSilent) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected)
		if r, ok := errors.AsType[*domain.Refusal](err); ok && (r.Code != unavailable || c.Patience > 0 && time.Since(began) > c.Patience) {
			if r.Code == unavailable {
				return nil, lost(r)
			}
			return nil, r
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.Patience > 0 && time.Since(began) > c.Patience || c.nc.IsClosed() {
			return nil, lost(c.unreachable(err))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takenError is the end of a request that a node may have taken in before it
// fell silent.
type takenError struct{ error }

func (e takenError) Unwrap() error { return e.error }

// errSilent: nobody works on the request any more.
var errSilent = errors.New("the node that was asked fell silent")

// unreachable says that no node answered: whether NATS did tells where to look.
func (c *Client) unreachable(err error) error {
	why, try := err.Error(), "start one with rollcall up"
	switch {
	case errors.Is(err, nats.ErrNoResponders) && c.nc.IsConnected():
		why = "NATS answers at " + c.nc.ConnectedAddr() + ", and no node is on it, or none that has its streams yet"
		try = "start one: rollcall up, or on servers of your own rollcall node init once and then rollcall up --join URL; a node that waits for other servers says so in its log"
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrDisconnected):
		why = "nothing answers on NATS"
	}
	return domain.Refuse("node-unreachable", "no node answers", why, try)
}

// try asks once.
func (c *Client) try(ctx context.Context, subject string, data []byte, binary bool) ([]byte, error) {
	msg := nats.NewMsg(subject)
	msg.Data, msg.Reply = data, c.nc.NewRespInbox()
	msg.Header.Set(HeaderParts, "yes")
	msg.Header.Set(HeaderWorking, "yes")
	msg.Header.Set(contentType, contentJSON)
	if binary {
		msg.Header.Set(contentType, contentProtobuf)
	}
	sub, err := c.nc.SubscribeSync(msg.Reply)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // gone with the connection otherwise
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	reconnects := c.nc.Stats().Reconnects
	if err := c.nc.PublishMsg(msg); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	var body []byte
	for want := 1; ; {
		m, err := c.next(ctx, sub, subject, reconnects)
		if err != nil {
			return nil, err
		}
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
			return nil, nats.ErrNoResponders
		}
		if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
			return nil, decodeError(m, code)
		}
		if m.Header.Get(HeaderWorking) != "" {
			continue
		}
		part := m.Header.Get(HeaderPart)
		if part == "" {
			return m.Data, nil
		}
		var i, n int
		if _, err := fmt.Sscanf(part, "%d/%d", &i, &n); err != nil || i != want {
			return nil, fmt.Errorf("part %q came where %d was due", part, want)
		}
		if body = append(body, m.Data...); i == n {
			return body, nil
		}
		want++
	}
}

// next waits for a message. What was asked on a connection that broke since, or
// of a node that fell silent, nobody answers any more.
func (c *Client) next(ctx context.Context, sub *nats.Subscription, subject string, reconnects uint64) (*nats.Msg, error) {
	for began := time.Now(); ; {
		moment, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		m, err := sub.NextMsgWithContext(moment)
		cancel()
		switch {
		case err == nil || !errors.Is(err, context.DeadlineExceeded):
			return m, err
		case ctx.Err() != nil:
			return nil, nats.ErrTimeout
		case c.nc.Stats().Reconnects != reconnects:
			return nil, nats.ErrDisconnected
		case denied(c.nc, subject):
			return nil, domain.Refuse("nats-denied", "these credentials do not open this", "NATS does not let them publish to "+subject,
				"use those of a node for what is the operator's of the installation, --tenant where they are of another tenant, and an auditor's for log, replay, verify and export only")
		case time.Since(began) > silence:
			return nil, errSilent
		}
	}
}

// denied reports whether the server refused the publish: it says so beside the
// request, and never answers.
func denied(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

func decodeError(m *nats.Msg, code string) error {
	if m.Header.Get(contentType) == contentProtobuf {
		r := new(rollcallv1.Refusal)
		if proto.Unmarshal(m.Data, r) == nil && r.GetCode() != "" {
			return refusalError(r)
		}
	}
	var e ErrorBody
	if json.Unmarshal(m.Data, &e) == nil && e.Code != "" {
		return e.refusal()
	}
	return domain.Refuse(code, m.Header.Get(micro.ErrorHeader), "", "")
}

// read asks a verb in JSON.
func read[Answer any](ctx context.Context, c *Client, verb string, req any) (Answer, error) {
	return inJSON[Answer](verb, req, func(data []byte) ([]byte, error) { return c.request(ctx, verb, data, false) })
}

// inJSON has a request sent and reads its answer.
func inJSON[Answer any](what string, req any, send func(data []byte) ([]byte, error)) (Answer, error) {
	var out Answer
	data, err := Marshal(req)
	if err != nil {
		return out, err
	}
	body, err := send(data)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", what, err)
	}
	return out, nil
}

// do sends a command and waits for what becomes of it. Asking again after a
// lost answer is harmless: the command keeps its id.
func (c *Client) do(ctx context.Context, conversation string, cmd *rollcallv1.Command) (AnswerBody, error) {
	cmd.Id = NewID()
	data, err := proto.Marshal(&rollcallv1.CommandRequest{Conversation: conversation, Command: cmd})
	if err != nil {
		return AnswerBody{}, textRefusal("the request", err)
	}
	body, err := c.request(ctx, verbOf(cmd), data, true)
	if _, taken := errors.AsType[takenError](err); taken {
		return AnswerBody{}, outcomeUnknown("it was sent to a node, and no answer came")
	}
	if err != nil {
		return AnswerBody{}, err
	}
	answer := new(rollcallv1.Answer)
	if err := proto.Unmarshal(body, answer); err != nil {
		return AnswerBody{}, fmt.Errorf("read the answer of %s: %w", verbOf(cmd), err)
	}
	return answerBody(answer), nil
}
