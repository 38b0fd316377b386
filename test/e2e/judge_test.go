package e2e_test

import (
	"context"
	"os"
	"slices"

	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// damages says that this test damages the log on purpose: the checker must see
// that the rules are broken, and no other is.
func (p *place) damages(rules ...string) { p.damaged = append(p.damaged, rules...) }

// judge ends every test. Nobody works any more: what stands on the disk is held
// against the model server's record by the checker's own reading.
func (p *place) judge() {
	p.t.Helper()
	if _, err := os.Stat(natsd.StreamsDir(p.dir)); os.IsNotExist(err) && len(p.models.Requests()) == 0 {
		return // no node ever ran here
	}
	server, err := natsd.Start(natsd.Config{Dir: p.dir})
	if err != nil {
		p.t.Error(err)
		return
	}
	defer server.Shutdown()
	nc, err := server.Connect()
	if err != nil {
		p.t.Error(err)
		return
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	logs, err := checker.Read(ctx, nc)
	if err != nil {
		p.t.Error(err)
	}
	seen := map[string]bool{}
	for _, f := range checker.CheckAll(logs, p.recorded()) {
		if seen[f.Rule] = true; !slices.Contains(p.damaged, f.Rule) {
			p.t.Error(f)
		}
	}
	for _, rule := range p.damaged {
		if !seen[rule] {
			p.t.Errorf("the log was damaged, and the rule %s does not see it", rule)
		}
	}
}

// recorded is the model server's record, as the checker takes it.
func (p *place) recorded() []checker.Request { return requestsOf(p.models) }

func requestsOf(models *scripted.Server) (all []checker.Request) {
	for _, r := range models.Requests() {
		all = append(all, checker.Request{
			Conversation: r.Conversation, Member: r.Member, Run: r.Run, Step: r.Step, Body: r.Body, Time: r.Time,
		})
	}
	return all
}
