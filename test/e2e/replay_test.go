package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// replay-equals: with no model server at all, from the log alone, the command
// line gives again what was: the states of every version, the requests that the
// model server recorded, byte for byte, and how it ended.
func TestReplayEquals(t *testing.T) {
	t.Parallel()
	p := newPlace(t, storiesScript(t))
	p.start()
	c := p.client()
	var told []*telling
	var all []string
	for _, s := range stories {
		told = append(told, p.tell(p.ctx(), c, s))
	}
	for _, one := range told {
		p.heard(c, one)
		all = append(all, one.id)
	}
	p.kill()
	p.forget()
	p.door.shut()
	p.start()
	report := document[struct {
		Problems      int
		Conversations []struct {
			Conversation string
			Requests     int
			Recorded     int
			Members      []struct{ Calls, Answered int }
		}
	}](p, "verify", "--model-record", p.record)
	if report.Problems > 0 || len(report.Conversations) != len(told) {
		t.Errorf("verify finds %+v", report)
	}
	for _, one := range report.Conversations {
		calls, answered := 0, 0
		for _, m := range one.Members {
			calls, answered = calls+m.Calls, answered+m.Answered
		}
		if one.Recorded == 0 || one.Recorded != calls || one.Requests != answered {
			t.Errorf("of %d calls the server recorded %d, and %d of %d answered ones were computed again", calls, one.Recorded, one.Requests, answered)
		}
	}
	for _, one := range told {
		last := p.state(c, one.id)
		for v := uint64(1); v <= last.Version; v += 7 {
			p.past(c, one.id, v)
		}
		p.past(c, one.id, last.Version)
	}
	p.door.listen()
	p.settle(c, all...)
}

// past checks that the node shows and replays a version as the log gives it.
func (p *place) past(c *api.Client, id string, version uint64) {
	p.t.Helper()
	key, sealed := p.sealed(c, id)
	want := domain.New(key)
	for _, raw := range sealed[:version] {
		want.Evolve(got(domain.Unseal(raw)).must(p.t))
	}
	at := api.ReadRequest{Conversation: id, At: version}
	shows := got(c.Show(p.ctx(), at)).must(p.t)
	if shows.Version != version || shows.StateHash != want.Hash() || shows.Status != want.Status() || len(shows.Tasks.List) != len(want.Tasks) {
		p.t.Errorf("version %d of %s is shown as %s with the state %s, the log gives %s", version, id, shows.Status, shows.StateHash, want.Hash())
	}
	if version%5 == 0 {
		lines := strings.Split(strings.TrimSpace(p.ok("replay", fmt.Sprintf("%s@%d", id, version), "--json")), "\n")
		var end struct {
			Version   uint64
			StateHash string `json:"state_hash"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
			p.t.Fatal(err)
		}
		if end.Version != version || end.StateHash != want.Hash() {
			p.t.Errorf("version %d of %s is replayed as %+v", version, id, end)
		}
	}
}
