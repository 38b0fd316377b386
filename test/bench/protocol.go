package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // served only with -pprof
	"regexp"
	"strings"
	"time"
)

// system is what is measured. Agents have names; a message's text carries its
// id, see textOf.
type system interface {
	// agents makes the named agents, durably.
	agents(ctx context.Context, names []string) error
	// turn sends a message and returns when what came of it is durable.
	turn(ctx context.Context, agent, text string) (reply string, err error)
	// send returns when the message is accepted, durably.
	send(ctx context.Context, agent, text string) error
	// pingPong has two agents take n turns, one after the other.
	pingPong(ctx context.Context, run string, n int) error
	// diamond has a lead take a turn, then each member one at the same time,
	// then the lead another.
	diamond(ctx context.Context, run string, members int) error
	// state lists the ids of an agent's messages that have a durable answer.
	state(ctx context.Context, agent string) ([]string, error)
	// all reads the state of every agent.
	all(ctx context.Context) (agents, turns int, err error)
	// seed writes the agents a0, a1, … that are not there yet, each with that
	// many turns, without a model.
	seed(ctx context.Context, agents, turns int) error
	close() error
}

// errNone says that a system has no such thing.
var errNone = errors.New("not here")

// request holds what any of the requests may carry.
type request struct {
	Agents  []string `json:"agents"`
	Agent   string   `json:"agent"`
	Text    string   `json:"text"`
	Run     string   `json:"run"`
	Members int      `json:"members"`
	N       int      `json:"n"`
	Turns   int      `json:"turns"`
}

type answer struct {
	Reply  string   `json:"reply,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	Agents int      `json:"agents,omitempty"`
	Turns  int      `json:"turns,omitempty"`
}

// handler is the HTTP face of a system: POST with JSON, or GET where nothing
// is sent.
func handler(s system) http.Handler {
	mux := http.NewServeMux()
	on := func(path string, do func(context.Context, request) (answer, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			var in request
			if r.Method == http.MethodPost {
				if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
			} else {
				in.Agent = r.URL.Query().Get("agent")
			}
			out, err := do(r.Context(), in)
			switch {
			case errors.Is(err, errNone):
				http.Error(w, err.Error(), http.StatusNotImplemented)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			default:
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(out) // the client sees a broken answer
			}
		})
	}
	on("/healthz", func(context.Context, request) (answer, error) { return answer{}, nil })
	on("/recover", func(context.Context, request) (answer, error) { return answer{}, nil })
	on("/agents", func(ctx context.Context, r request) (answer, error) { return answer{}, s.agents(ctx, r.Agents) })
	on("/turn", func(ctx context.Context, r request) (a answer, err error) {
		a.Reply, err = s.turn(ctx, r.Agent, r.Text)
		return a, err
	})
	on("/send", func(ctx context.Context, r request) (answer, error) { return answer{}, s.send(ctx, r.Agent, r.Text) })
	on("/pingpong", func(ctx context.Context, r request) (answer, error) { return answer{}, s.pingPong(ctx, r.Run, r.N) })
	on("/dag", func(ctx context.Context, r request) (answer, error) {
		return answer{}, s.diamond(ctx, r.Run, r.Members)
	})
	on("/state", func(ctx context.Context, r request) (a answer, err error) {
		a.IDs, err = s.state(ctx, r.Agent)
		return a, err
	})
	on("/all", func(ctx context.Context, _ request) (a answer, err error) {
		a.Agents, a.Turns, err = s.all(ctx)
		return a, err
	})
	on("/seed", func(ctx context.Context, r request) (answer, error) { return answer{}, s.seed(ctx, r.N, r.Turns) })
	return mux
}

// listen serves until ctx ends.
func listen(ctx context.Context, o options, s system) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(s), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if o.profile != "" {
		profiles := &http.Server{Addr: o.profile, ReadHeaderTimeout: time.Minute} // the default mux, where pprof is
		go func() { _ = profiles.ListenAndServe() }()
		defer profiles.Close()
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// textOf is a message of about 200 bytes that carries the id.
func textOf(id string) string {
	return "[[m:" + id + "]] " + strings.Repeat("Read this and say. ", 10)
}

var marked = regexp.MustCompile(`\[\[m:([^\]]*)\]\]`)

// idOf is the id that a text carries; empty for none.
func idOf(text string) string {
	if m := marked.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// promptOf is the system prompt of an agent, about 200 bytes.
func promptOf(agent string) string {
	return fmt.Sprintf("You are %s. %s", agent, strings.Repeat("Answer with one sentence. ", 7))
}
