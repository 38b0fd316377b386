package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Defaults of a Config.
const (
	DefaultBaseURL   = "https://api.openai.com/v1"
	DefaultFirstByte = 10 * time.Minute
	DefaultIdle      = 2 * time.Minute
	DefaultTotal     = time.Hour
	DefaultMaxReply  = 64 << 20
)

// Config says which model server to call, and how patiently.
type Config struct {
	// BaseURL mostly ends in /v1; DefaultBaseURL when empty.
	BaseURL string
	// Key is sent as a bearer token; empty sends none.
	Key string
	// HTTPClient brings its own transport, such as a proxy's; nil is a plain
	// one. Its timeout is not used, and redirects are not followed.
	HTTPClient *http.Client
	// FirstByte is how long the server may be silent before the answer begins.
	// Keep-alives extend it: servers queue requests for long.
	FirstByte time.Duration
	// Idle is how long the answer may pause. Keep-alives do not extend it.
	Idle time.Duration
	// Total bounds a call, the wait at the gate not counted.
	Total time.Duration
	// MaxReply bounds the answer on the wire, in bytes. A stream is many times
	// longer than its text.
	MaxReply int64
}

// OpenAI is a Client for servers that speak the OpenAI-compatible API. It is
// safe for use by many goroutines and starts none that outlive a call, except
// those of idle connections, which Close ends.
type OpenAI struct {
	cfg   Config
	api   *openai.Client
	http  *http.Client
	owned *http.Transport
	gate  *gate
	plain atomic.Bool
}

var _ Client = (*OpenAI)(nil)

// New makes a client. All clients of one process with the same address and key
// share one gate. A bad address shows at the first call.
func New(cfg Config) *OpenAI {
	cfg.BaseURL = strings.TrimRight(strings.TrimSpace(cmp.Or(cfg.BaseURL, DefaultBaseURL)), "/")
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/chat/completions")
	cfg.Key = strings.TrimSpace(cfg.Key)
	cfg.FirstByte = cmp.Or(cfg.FirstByte, DefaultFirstByte)
	cfg.Idle = cmp.Or(cfg.Idle, DefaultIdle)
	cfg.Total = cmp.Or(cfg.Total, DefaultTotal)
	cfg.MaxReply = cmp.Or(cfg.MaxReply, int64(DefaultMaxReply))
	c := &OpenAI{cfg: cfg, gate: gateFor(cfg.BaseURL, cfg.Key), http: &http.Client{}}
	if cfg.HTTPClient != nil {
		c.http.Jar = cfg.HTTPClient.Jar
		c.http.Transport = cfg.HTTPClient.Transport
	} else {
		c.owned = ownTransport()
		c.http.Transport = c.owned
	}
	if c.http.Transport == nil {
		c.http.Transport = http.DefaultTransport
	}
	c.http.Transport = transport{base: c.http.Transport}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	api := openai.DefaultConfig(cfg.Key)
	api.BaseURL = cfg.BaseURL
	api.HTTPClient = c.http
	c.api = openai.NewClientWithConfig(api)
	return c
}

// Close ends idle connections. Calls under way go on.
func (c *OpenAI) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// Held is how long the server wants no request of this account.
func (c *OpenAI) Held() time.Duration { return c.gate.left() }

// Pass is Client's: it waits at the account's gate.
func (c *OpenAI) Pass(ctx context.Context) error { return c.gate.pass(ctx) }

// Call is Client's: it sends one request and reads its answer to the end.
func (c *OpenAI) Call(ctx context.Context, from Caller, req Request, onText func(string)) (Reply, error) {
	if c.plain.Load() {
		req.Plain = true
	}
	body, err := Encode(req)
	if err != nil {
		return Reply{}, &Error{Code: CodeRefused, What: "the request cannot be sent", Why: err.Error(), Try: tryAddress}
	}
	sent := time.Now()
	reply, fail := c.exchange(ctx, from, req, body, onText)
	if fail == nil {
		c.gate.answered(sent)
		reply.RequestHash = hashOf(body)
		return reply, nil
	}
	if ctx.Err() != nil {
		return Reply{}, ctx.Err()
	}
	switch {
	case fail.Code == CodeRateLimited:
		c.gate.limited(sent, fail.RetryAfter)
	case fail.Transient && fail.RetryAfter > 0:
		c.gate.busy(fail.RetryAfter)
	case fail.Code == CodeRefused && !req.Plain && mentionsOptions(fail.Why):
		// Learnt: from now on the server is not asked for usage figures.
		c.plain.Store(true)
		fail.Transient = true
		fail.Try = "the step is tried again without stream_options"
	case fail.Code == CodeKeyRefused && c.cfg.Key == "":
		fail.Try = "set OPENAI_API_KEY: no key was sent"
	}
	fail.RequestHash = hashOf(body)
	fail.Why = without(c.cfg.Key, fail.Why)
	return Reply{}, fail
}

func mentionsOptions(why string) bool {
	return strings.Contains(why, "stream_options") || strings.Contains(why, "include_usage")
}

// exchange sends body and reads the answer.
func (c *OpenAI) exchange(parent context.Context, from Caller, req Request, body []byte, onText func(string)) (Reply, *Error) {
	late := timeout("the answer took too long", fmt.Sprintf("it was not finished after %v", c.cfg.Total))
	ctx, release := context.WithTimeoutCause(parent, c.cfg.Total, late)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{
		body: body, header: headers(from), limit: c.cfg.MaxReply,
		watch: newWatch(cancel, c.cfg.FirstByte, c.cfg.Idle), extras: map[int]string{},
	}
	defer x.watch.stop()

	// The transport sends x.body: of this request only the call counts.
	stream, err := c.api.CreateChatCompletionStream(withExchange(ctx, x), openai.ChatCompletionRequest{Model: "rollcall"})
	if err != nil {
		return Reply{}, failure(ctx, err, false)
	}
	defer stream.Close()
	acc := newAccumulator(x.extras)
	for n := 1; ; n++ {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fail := failure(ctx, err, true)
			if acc.finish != "" && fail.Code == CodeCut && parent.Err() == nil {
				break // complete: only what may follow a finish reason is missing
			}
			return Reply{}, fail
		}
		if said := acc.add(c, n); said != "" && onText != nil {
			onText(said)
		}
		if fail := acc.overrun(); fail != nil {
			return Reply{}, fail
		}
	}
	if x.chunks == 0 {
		return Reply{}, x.nothing()
	}
	if acc.finish == "" {
		return Reply{}, cut("the stream ended without a finish reason")
	}
	return acc.reply(from, req, body), nil
}

// failure names what ended an exchange: the watch, the transport, or the
// connection.
func failure(ctx context.Context, err error, began bool) *Error {
	if e, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return e
	}
	return network(err, began)
}

func headers(from Caller) http.Header {
	h := http.Header{"User-Agent": {"rollcall"}}
	for name, value := range map[string]string{
		"Rollcall-Conversation": from.Key.Conversation,
		"Rollcall-Member":       url.PathEscape(from.Member),
		"Rollcall-Run":          from.Run,
		"Rollcall-Step":         strconv.FormatUint(uint64(from.Step), 10),
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// reply is what the pieces came to.
func (a *accumulator) reply(from Caller, req Request, body []byte) Reply {
	r := Reply{
		Text: a.text.String(), Reasoning: a.reasoning.String(),
		Finish: a.finish, Model: cmp.Or(a.model, req.Model),
	}
	switch strings.ToLower(a.finish) {
	case "length", "max_tokens", "model_length":
		r.Finish = "length"
	case "content_filter", "safety", "sensitive", "recitation":
		r.Finish = "content_filter"
	default:
		seed := fmt.Sprintf("%v.%s.%d", from.Key, from.Run, from.Step)
		r.Calls = a.result(idsOf(req.Messages), seed, req.Tools)
	}
	r.Usage = a.used(body, r)
	return r
}

// used are the server's figures, or a rough count of ours: four bytes a token.
func (a *accumulator) used(body []byte, r Reply) *rollcallv1.Usage {
	if u := a.usage; u != nil {
		out := &rollcallv1.Usage{InputTokens: uint64(u.PromptTokens), OutputTokens: uint64(u.CompletionTokens)}
		if u.PromptTokensDetails != nil {
			out.CachedTokens = uint64(u.PromptTokensDetails.CachedTokens)
		}
		return out
	}
	size := len(r.Text) + len(r.Reasoning)
	for _, c := range a.calls {
		size += len(c.name) + c.arguments.Len()
	}
	return &rollcallv1.Usage{InputTokens: tokens(len(body)), OutputTokens: tokens(size), Estimated: true}
}

func tokens(bytes int) uint64 { return uint64(bytes+3) / 4 }

func idsOf(messages []Message) map[string]bool {
	ids := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			ids[c.GetId()] = true
		}
	}
	return ids
}
