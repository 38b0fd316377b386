package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// floor is the least that a durable turn can be on JetStream: the message is
// published and acknowledged, the model is called, the answer is published and
// acknowledged, each with the expected sequence of its agent. It has no
// recovery, no ids, no snapshot and no supervision.
type floor struct {
	server *natsd.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	models *http.Client
	url    string

	mu     sync.Mutex
	byName map[string]*floorAgent
}

type floorAgent struct {
	mu      sync.Mutex
	last    uint64 // sequence of its subject
	history []floorEvent
}

type floorEvent struct {
	Agent   string `json:"agent"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

const floorStream = "FLOOR"

func startFloor(ctx context.Context, o options) (*floor, error) {
	s, err := natsd.Start(natsd.Config{Dir: o.data, SyncAlways: o.always()})
	if err != nil {
		return nil, err
	}
	f := &floor{
		server: s, url: o.stub + "/chat/completions", byName: map[string]*floorAgent{},
		models: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}},
	}
	if f.nc, err = s.Connect(); err == nil {
		f.js, err = jetstream.New(f.nc)
	}
	if err == nil {
		_, err = f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: floorStream, Subjects: []string{"floor.>"}, AllowDirect: true})
	}
	if err != nil {
		s.Shutdown()
		return nil, err
	}
	return f, nil
}

func (f *floor) close() error {
	f.nc.Close()
	f.server.Shutdown()
	return nil
}

func (f *floor) agent(name string) *floorAgent {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.byName[name]
	if a == nil {
		a = new(floorAgent)
		f.byName[name] = a
	}
	return a
}

// put appends an event of an agent, whose lock is held.
func (f *floor) put(ctx context.Context, a *floorAgent, e floorEvent) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: "floor." + e.Agent, Data: data, Header: nats.Header{}}
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(a.last, 10))
	ack, err := f.js.PublishMsg(ctx, m)
	if err != nil {
		return err
	}
	a.last = ack.Sequence
	a.history = append(a.history, e)
	return nil
}

func (f *floor) turn(ctx context.Context, agent, text string) (string, error) {
	a := f.agent(agent)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := f.put(ctx, a, floorEvent{agent, "user", text}); err != nil {
		return "", err
	}
	reply, err := f.chat(ctx, agent, a.history)
	if err != nil {
		return "", err
	}
	return reply, f.put(ctx, a, floorEvent{agent, "assistant", reply})
}

// chat asks the model with the whole history.
func (f *floor) chat(ctx context.Context, agent string, history []floorEvent) (string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	messages := []message{{"system", promptOf(agent)}}
	for _, e := range history {
		messages = append(messages, message{e.Role, e.Content})
	}
	body, err := json.Marshal(map[string]any{"model": modelName, "messages": messages})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := f.models.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	var out struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return "", err
	}
	if len(out.Choices) == 0 {
		return "", errors.New("the model said nothing")
	}
	return out.Choices[0].Message.Content, nil
}

func (f *floor) agents(context.Context, []string) error { return nil }

func (f *floor) send(context.Context, string, string) error { return errNone }

func (f *floor) pingPong(ctx context.Context, run string, n int) error {
	for i := range n {
		if _, err := f.turn(ctx, [2]string{"ping", "pong"}[i%2], textOf(fmt.Sprintf("%s.%d", run, i))); err != nil {
			return err
		}
	}
	return nil
}

func (f *floor) diamond(ctx context.Context, run string, members int) error {
	ask := func(agent string) error {
		_, err := f.turn(ctx, agent, textOf(run+"."+agent))
		return err
	}
	if err := ask("lead"); err != nil {
		return err
	}
	if err := each(agentNames(members), members, ask); err != nil {
		return err
	}
	_, err := f.turn(ctx, "lead", textOf(run+".join"))
	return err
}

func (f *floor) state(context.Context, string) ([]string, error) { return nil, errNone }
func (f *floor) all(context.Context) (int, int, error)           { return 0, 0, errNone }
func (f *floor) seed(context.Context, int, int) error            { return errNone }
