package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// settle ends a scenario, whose conversations have come to rest. It holds each
// log against the model server's record, and then replay-equals: the node stops,
// its read models are deleted, it starts again, and every member and every view
// is as it was, although the model server has seen no connection.
func (p *place) settle(c *api.Client, ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		p.until(c, id, "rest", quiet)
	}
	before, came := p.sight(c, ids), p.door.count.Load()
	for _, id := range ids {
		if hash := p.audit(c, id).StateHash; before.Show[id].StateHash != hash {
			p.t.Errorf("the node shows the state %s of %s, the log gives %s", before.Show[id].StateHash, id, hash)
		}
	}
	p.stop()
	p.forget()
	p.start()
	after := p.sight(c, ids)
	if n := p.door.count.Load() - came; n != 0 {
		p.t.Errorf("%d connections to the model server by starting again", n)
	}
	differences(p.t, before, after)
}

// forget deletes the read models.
func (p *place) forget() {
	p.t.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.RemoveAll(filepath.Join(p.dir, "views.db"+end)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// sight is all that a client can read of some conversations.
type sight struct {
	Roll  map[string]api.MemberRoll
	List  map[string]any
	Show  map[string]api.Detail
	Mail  map[string]api.MailAnswer
	Files map[string]api.FilesAnswer
	Usage map[string]api.UsageAnswer
}

func (p *place) sight(c *api.Client, ids []string) sight {
	p.t.Helper()
	s := sight{
		Roll: roll(p.t, p, c), List: map[string]any{}, Show: map[string]api.Detail{}, Mail: map[string]api.MailAnswer{},
		Files: map[string]api.FilesAnswer{}, Usage: map[string]api.UsageAnswer{},
	}
	for _, id := range ids {
		about := api.ReadRequest{Conversation: id}
		s.Show[id] = got(c.Show(p.ctx(), about)).must(p.t)
		s.Mail[id] = got(c.Mail(p.ctx(), api.MailRequest{ReadRequest: about})).must(p.t)
		s.Files[id] = got(c.Files(p.ctx(), about)).must(p.t)
		s.Usage[id] = got(c.Usage(p.ctx(), about)).must(p.t)
	}
	for _, conversation := range got(c.List(p.ctx())).must(p.t).Conversations {
		s.List[conversation.ID] = conversation
	}
	return s
}

// result is what a call came to.
type result[Answer any] struct {
	answer Answer
	err    error
}

func got[Answer any](answer Answer, err error) result[Answer] { return result[Answer]{answer, err} }

// must is the answer of a call that may not fail.
func (r result[Answer]) must(t *testing.T) Answer {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.answer
}

// differences names every part of two sights that differs.
func differences(t *testing.T, before, after sight) {
	t.Helper()
	a, b := parts(t, before), parts(t, after)
	for kind, was := range a {
		for id, part := range was {
			if got := b[kind][id]; string(got) != string(part) {
				t.Errorf("%s of %s was\n%s\nand is after a restart, from the log alone,\n%s", kind, id, part, got)
			}
		}
		if len(was) != len(b[kind]) {
			t.Errorf("%s: %d before the restart and %d after it", kind, len(was), len(b[kind]))
		}
	}
}

func parts(t *testing.T, s sight) (out map[string]map[string]json.RawMessage) {
	t.Helper()
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
