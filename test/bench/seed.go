package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// seed writes conversations as the node itself would have: the same decisions
// by the same rules, commit by commit. Only the model's words come from here.
func (r *rollcall) seed(ctx context.Context, agents, turns int) error {
	there, err := r.store.Conversations(ctx, partitions())
	if err != nil {
		return err
	}
	known := map[domain.Key]bool{}
	for _, k := range there {
		known[k] = true
	}
	var names []string
	for _, name := range agentNames(agents) {
		if !known[keyOf(name)] {
			names = append(names, name)
		}
	}
	return each(names, 50, func(name string) error { return r.seedOne(ctx, name, turns) })
}

func partitions() (all []int) {
	for p := range domain.Partitions {
		all = append(all, p)
	}
	return all
}

func (r *rollcall) seedOne(ctx context.Context, name string, turns int) error {
	w := writer{store: r.store, key: keyOf(name), rules: &domain.Rules{Contracts: contract.All(), DefaultModel: modelName}}
	w.state = domain.New(w.key)
	w.do(ctx, &rollcallv1.Command{Id: ulid.Make().String(), Kind: &rollcallv1.Command_OpenConversation{OpenConversation: r.opening(name, nil)}})
	for i := range turns {
		text := textOf(fmt.Sprintf("%s.%d", name, i))
		w.do(ctx, &rollcallv1.Command{Id: ulid.Make().String(), Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{
			To: domain.LeadID, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: text},
		}}})
		run := w.state.Lead().Run
		if w.err == nil && run == nil {
			w.err = errors.New("the message began no run")
		}
		if w.err != nil {
			break
		}
		w.do(ctx, &rollcallv1.Command{Actor: domain.LeadID, Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{
			Member: domain.LeadID, Run: run.ID, Step: run.Step, Attempt: run.Attempt, Finish: "stop", Model: modelName,
			Text: &rollcallv1.Body{Text: answerTo(idOf(text))}, Usage: &rollcallv1.Usage{InputTokens: 500, OutputTokens: 50},
		}}})
	}
	if w.err != nil {
		return fmt.Errorf("seed %s: %w", name, w.err)
	}
	return nil
}

// writer decides and appends commands one by one; the first error stays.
type writer struct {
	store *eventstore.JetStream
	rules *domain.Rules
	key   domain.Key
	state *domain.State
	at    eventstore.Position
	err   error
}

func (w *writer) do(ctx context.Context, cmd *rollcallv1.Command) {
	if w.err != nil {
		return
	}
	batch, err := w.state.Begin(w.rules, domain.Stamp{Time: time.Now().UTC(), Node: "seed", Epoch: 1, CommitID: ulid.Make().String()})
	if err == nil {
		_, err = batch.Decide(cmd)
	}
	if err != nil {
		w.err = err
		return
	}
	rec, err := w.store.Append(ctx, w.key, w.at, batch.Commit())
	if err != nil {
		w.err = err
		return
	}
	w.at = rec.Position()
	w.state.Committed(rec.Commit)
}
