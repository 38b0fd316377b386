package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rollcall-dev/rollcall/domain"
)

// ServiceName is the service's name in NATS discovery.
const ServiceName = "rollcall"

// Patience is how long a write waits for its answer when nothing else is said.
const Patience = 5 * time.Second

// Config is what a node gives the service to answer from.
type Config struct {
	Store  Store
	Views  Views
	Roller Roller
	Doctor Doctor
	// Cluster knows the other nodes; nil: there are none.
	Cluster Cluster
	// Rules are those that the node decides by; nil: of no contract and no tools.
	Rules *domain.Rules
	// Node is the node's name, Version the program's (semantic).
	Node    string
	Version string
	// Settings the node was started with.
	Settings NodeSettings
	// Patience is the default wait of a write for its answer; 0: Patience.
	Patience time.Duration
	// Touch, if not nil, is called at every request: somebody uses the node.
	Touch func()
	// Log gets what goes wrong on the way; nil: nowhere.
	Log *slog.Logger
}

// Server answers the service. It runs one goroutine a request, at most
// maxRequests at a time, until Close.
type Server struct {
	nc      *nats.Conn
	cfg     Config
	service micro.Service
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	slots   chan struct{}
	answers *answers
	uploads *uploads
	folds   *folds
	blobs   *blobCache
	// peers asks other nodes.
	peers *Client
}

const maxRequests = 64

// Serve starts the service on nc and answers until Close. It does not own nc.
func Serve(nc *nats.Conn, cfg Config) (*Server, error) {
	if cfg.Patience == 0 {
		cfg.Patience = Patience
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Touch == nil {
		cfg.Touch = func() {}
	}
	if cfg.Cluster == nil {
		cfg.Cluster = alone{}
	}
	if cfg.Rules == nil {
		cfg.Rules = new(domain.Rules)
	}
	if cfg.Version == "" {
		cfg.Version = "0.0.0"
	}
	answers, err := listenForAnswers(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		nc: nc, cfg: cfg, ctx: ctx, cancel: cancel,
		slots:   make(chan struct{}, maxRequests),
		answers: answers, uploads: newUploads(), folds: newFolds(cfg.Store), blobs: newBlobCache(cfg.Store),
		peers: NewClient(nc, ""),
	}
	s.service, err = micro.AddService(nc, micro.Config{
		Name: ServiceName, Version: cfg.Version,
		Description: "Teams of LLM agents on an event log",
		Metadata:    map[string]string{"node": cfg.Node},
	})
	if err != nil {
		s.Close() //nolint:errcheck // the first error is the one to tell
		return nil, fmt.Errorf("serve api: %w", err)
	}
	for _, v := range s.verbs() {
		subject := prefixAPI + "*." + v.name
		err := s.service.AddEndpoint(v.name, s.handler(v),
			micro.WithEndpointSubject(subject),
			micro.WithEndpointMetadata(map[string]string{"impact": v.impact, "about": v.about}))
		if err != nil {
			s.Close() //nolint:errcheck // the first error is the one to tell
			return nil, fmt.Errorf("serve api verb %s: %w", v.name, err)
		}
	}
	// Chunks of one upload have to come to the node that holds the first ones.
	err = s.service.AddEndpoint("upload-here", s.handler(verb{name: "upload-here", read: reader(s.upload)}),
		micro.WithEndpointSubject(prefixAPI+"*.upload."+s.service.Info().ID),
		micro.WithEndpointMetadata(map[string]string{"impact": "write", "about": "further chunks of an upload"}))
	if err != nil {
		s.Close() //nolint:errcheck // the first error is the one to tell
		return nil, fmt.Errorf("serve api uploads: %w", err)
	}
	if err := s.serveNodes(); err != nil {
		s.Close() //nolint:errcheck // the first error is the one to tell
		return nil, err
	}
	return s, nil
}

// Close stops taking requests, gives up the waits of those under way (they
// answer "accepted") and returns when all are answered.
func (s *Server) Close() error {
	var err error
	if s.service != nil {
		err = s.service.Stop()
	}
	s.cancel()
	s.work.Wait()
	s.answers.close()
	if err != nil {
		return fmt.Errorf("stop api: %w", err)
	}
	return nil
}

// verb is one endpoint: exactly one of write and read is set.
type verb struct {
	name, impact, about string
	// subject's last token, where it is not the name.
	subject string
	whose   whose
	write   func(json []byte) (writeRequest, error)
	read    func(ctx context.Context, c call) (any, error)
}

// tenantAt is the token of the subject that names the tenant; 0: none does.
func (v verb) tenantAt() int {
	switch v.whose {
	case operators:
		return 0
	case nodes:
		return 3
	}
	return 2
}

// whose subjects a verb has: clients', operators' of the installation, or
// those between nodes.
type whose int

const (
	clients whose = iota
	operators
	nodes
)

// call is one request as it came.
type call struct {
	tenant string
	// data is JSON; protobuf requests are turned into it, except a log's.
	data []byte
	// binary is true when the answer must be protobuf.
	binary bool
}

func (s *Server) verbs() []verb {
	return []verb{
		{name: "open", impact: "spend", about: "open a conversation", write: decodeOpen},
		{name: "send", impact: "spend", about: "send a message to a member", write: decodeSend},
		{name: "task", impact: "write", about: "change a task on the board", write: decodeTask},
		{name: "interrupt", impact: "write", about: "abort a member's open run", write: decodeInterrupt},
		{name: "pause", impact: "write", about: "let no new step start", write: decodePause},
		{name: "resume", impact: "spend", about: "go on after a pause", write: decodeResume},
		{name: "retry", impact: "spend", about: "make held mail due again", write: decodeRetry},
		{name: "dissolve", impact: "write", about: "end the active team", write: decodeDissolve},
		{name: "approve", impact: "spend", about: "let a tool call be made that waits for the operator", write: decodeDecision(true)},
		{name: "deny", impact: "write", about: "refuse a tool call that waits for the operator", write: decodeDecision(false)},
		{name: "budget", impact: "spend", about: "raise the budget", write: decodeBudget},
		{name: "ls", impact: "read", about: "list conversations", read: reader(s.list)},
		{name: "show", impact: "read", about: "one conversation in full", read: reader(s.show)},
		{name: "roll", impact: "read", about: "have every member answer from its actor", read: reader(s.roll)},
		{name: "log", impact: "read", about: "a page of the log", read: s.log},
		{name: "mail", impact: "read", about: "messages of a conversation or member", read: reader(s.mail)},
		{name: "files", impact: "read", about: "files of a conversation or member", read: reader(s.files)},
		{name: "blob", impact: "read", about: "a chunk of a stored text or file", read: reader(s.blob)},
		{name: "upload", impact: "write", about: "the first chunk of a file to store", read: reader(s.upload)},
		{name: "usage", impact: "read", about: "model calls, tokens and cost", read: reader(s.usage)},
		{name: "doctor", impact: "read", about: "named checks of this installation", read: reader(s.doctor)},
		{name: "info", impact: "read", about: "which node answers", read: reader(s.info)},
	}
}

func (s *Server) handler(v verb) micro.HandlerFunc {
	return func(r micro.Request) {
		select {
		case s.slots <- struct{}{}:
		case <-s.ctx.Done():
			s.elsewhere(r)
			return
		}
		s.cfg.Touch()
		s.work.Go(func() {
			defer func() { <-s.slots }()
			s.answer(v, r)
		})
	}
}

// answer serves one request and responds. It publishes by itself because the
// micro request may be answered only inside its callback.
func (s *Server) answer(v verb, r micro.Request) {
	binary := r.Headers().Get(contentType) == contentProtobuf
	idle := func() {}
	if r.Headers().Get(HeaderWorking) != "" {
		idle = s.tellWorking(v, r)
	}
	body, err := s.serve(v, r, binary)
	idle()
	if r.Reply() == "" {
		return
	}
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		s.elsewhere(r)
		return
	}
	parts := split(body)
	if err == nil && len(parts) > 1 && r.Headers().Get(HeaderParts) == "" {
		err = domain.Refuse("answer-too-large", "the answer does not fit into one message",
			fmt.Sprintf("%d KiB", len(body)>>10), "ask for less, or take it in parts with the header "+HeaderParts+": yes")
	}
	if err != nil {
		e := errorBody(err)
		if e.Code == "internal" {
			s.cfg.Log.Error("a request failed", "verb", v.name, "error", err)
		}
		s.respond(v, r, binary, encodeError(e, binary), micro.ErrorHeader, headerText(e.What), micro.ErrorCodeHeader, e.Code)
		return
	}
	for i, part := range parts {
		var header []string
		if len(parts) > 1 {
			header = []string{HeaderPart, fmt.Sprintf("%d/%d", i+1, len(parts))}
		}
		s.respond(v, r, binary, part, header...)
	}
}

// elsewhere says what NATS says when nobody listens: this node stops, and the
// request, asked again, goes to another.
func (s *Server) elsewhere(r micro.Request) {
	if r.Reply() == "" {
		return
	}
	m := nats.NewMsg(r.Reply())
	m.Header.Set("Status", "503")
	if err := s.nc.PublishMsg(m); err != nil {
		s.cfg.Log.Debug("a request is left to another node", "error", err)
	}
}

// working is how often an asker who wants to know hears that its request is
// worked on.
const working = time.Second

// tellWorking says so until the function it returns is called. A node that was
// killed says nothing more, and its askers turn to another.
func (s *Server) tellWorking(v verb, r micro.Request) (idle func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(working)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.respond(v, r, false, nil, HeaderWorking, "yes")
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func (s *Server) respond(v verb, r micro.Request, binary bool, data []byte, header ...string) {
	msg := nats.NewMsg(r.Reply())
	msg.Data = data
	msg.Header.Set(contentType, contentJSON)
	if binary {
		msg.Header.Set(contentType, contentProtobuf)
	}
	for i := 0; i+1 < len(header); i += 2 {
		msg.Header.Set(header[i], header[i+1])
	}
	if err := s.nc.PublishMsg(msg); err != nil {
		s.cfg.Log.Warn("an answer could not be sent", "verb", v.name, "error", err)
	}
}

func (s *Server) serve(v verb, r micro.Request, binary bool) ([]byte, error) {
	tenant := ""
	if at := v.tenantAt(); at > 0 {
		tokens := strings.Split(r.Subject(), ".")
		if len(tokens) < at+2 || !domain.ValidToken(tokens[at]) {
			return nil, domain.Refuse("tenant-invalid", "the tenant in the subject is not valid",
				"a tenant is 1 to 64 of a-z, 0-9, '-' and '_'", "use main")
		}
		tenant = tokens[at]
	}
	if v.write != nil {
		req, err := decodeWrite(v, r.Data(), binary)
		if err != nil {
			return nil, err
		}
		answer, err := s.write(s.ctx, tenant, req)
		if err != nil {
			return nil, err
		}
		return encodeAnswer(answer, binary)
	}
	ctx, cancel := context.WithTimeout(s.ctx, readTimeout)
	defer cancel()
	data := r.Data()
	if binary && v.name != "log" {
		var err error
		if data, err = structJSON(data); err != nil {
			return nil, err
		}
	}
	doc, err := v.read(ctx, call{tenant: tenant, data: data, binary: binary})
	if err != nil {
		return nil, err
	}
	return encodeDocument(doc, binary)
}

// readTimeout bounds a read, waits for at_least included.
const readTimeout = 10 * time.Second

// reader makes a read verb of a function on decoded requests.
func reader[Req any](fn func(context.Context, string, Req) (any, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		var req Req
		if err := decodeJSON(c.data, &req); err != nil {
			return nil, err
		}
		return fn(ctx, c.tenant, req)
	}
}
