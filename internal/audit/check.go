package audit

import (
	"encoding/hex"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Body fetches a stored body. It may be nil: then requests that need one are
// not computed again, which is a problem of the report.
type Body func(*rollcallv1.Blob) ([]byte, error)

// Check audits a conversation's log: the sealed commits, in order, from the
// first. It always returns a report; what is wrong is in its Problems. After a
// commit that does not follow the one before nothing more is read: what comes
// behind a gap cannot be trusted.
func Check(key domain.Key, sealed [][]byte, body Body) *Report {
	r := &Report{
		Conversation: key.Conversation, Members: []Member{}, Problems: []Problem{},
		requests: map[attempt][]string{},
	}
	c := &checker{Report: r, state: domain.New(key), book: newBook(r), commits: map[uint64]*rollcallv1.Commit{}, body: body, lost: map[attempt]bool{}}
	var hash []byte
	for i, raw := range sealed {
		commit, err := domain.Unseal(raw)
		if err == nil {
			err = domain.CheckNext(uint64(i), hash, commit)
		}
		if err != nil {
			r.problem(uint64(i)+1, "log-broken", "%v: nothing after it can be trusted", err)
			break
		}
		hash = commit.GetHash()
		c.commit(commit)
	}
	r.Version, r.Hash, r.StateHash = c.state.Version, hex.EncodeToString(hash), c.state.Hash()
	r.Name = c.state.Name
	c.book.close()
	return r
}

type checker struct {
	*Report
	state   *domain.State
	book    *book
	commits map[uint64]*rollcallv1.Commit
	body    Body
	// lost are the calls whose request cannot be computed; that is told once.
	lost map[attempt]bool
}

func (c *checker) commit(commit *rollcallv1.Commit) {
	c.commits[commit.GetVersion()] = commit
	if commit.GetEpoch() < c.state.Epoch {
		c.problem(commit.GetVersion(), "epoch-falls", "written with epoch %d after %d", commit.GetEpoch(), c.state.Epoch)
	}
	for _, e := range commit.GetEvents() {
		c.Events++
		if reply := e.GetModelReplied(); reply != nil {
			c.answered(commit.GetVersion(), reply)
		}
		if failed := e.GetModelCallFailed(); failed.GetRequestHash() != "" {
			c.sameRequest(commit.GetVersion(), attempt{failed.GetRun(), failed.GetStep(), failed.GetAttempt()}, failed.GetRequestHash())
		}
		c.book.event(commit.GetVersion(), e)
	}
	c.state.Evolve(commit)
	for _, e := range commit.GetEvents() {
		if call := e.GetModelCallStarted(); call != nil {
			c.compute(commit.GetVersion(), call)
		}
	}
}
