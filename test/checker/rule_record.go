package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// called: each call that the model server recorded belongs to a ModelCallStarted
// that was committed before, of that run, step and member, and a step was called
// no more often than commits left a call of it open. So a member that had nothing
// to do was never called, and a crash costs one more call at most (see steps).
func called(b *book, say say) watcher {
	return watcher{record: func(record []Request) {
		type at struct {
			run  string
			step uint32
		}
		seen := map[at]int{}
		for _, q := range record {
			step, err := strconv.ParseUint(q.Step, 10, 32)
			r := b.runs[q.Run]
			switch {
			case err != nil:
				say("the model server was called by %s in run %s for step %q, which is no step", q.Member, q.Run, q.Step)
				continue
			case r == nil:
				say("the model server was called by %s in run %s, which the log does not have", q.Member, q.Run)
				continue
			case r.member.name != q.Member:
				say("the model server was called by %s in run %s, which is of %v", q.Member, q.Run, r.member)
			}
			begun := r.sent[uint32(step)]
			n := seen[at{q.Run, uint32(step)}] + 1
			seen[at{q.Run, uint32(step)}] = n
			switch {
			case n > len(begun):
				say("the model server was called %d times for step %d of %v, and the log began %d calls of it", n, step, r, len(begun))
			case !q.Time.IsZero() && !begun[n-1].Time.IsZero() && q.Time.Before(begun[n-1].Time):
				say("call %d of step %d of %v reached the model server %v before its commit was stored", n, step, r, begun[n-1].Time.Sub(q.Time))
			}
		}
	}}
}

// answered: the log has no reply that a model server did not give: for each, it
// recorded a call of that run and step with the bytes that the reply names by
// their hash.
func answered(b *book, say say) watcher {
	type call struct{ run, step, hash string }
	type reply struct {
		call
		version uint64
	}
	var replies []reply
	return watcher{
		event: func(f fact) {
			if r := f.GetModelReplied(); r != nil {
				replies = append(replies, reply{call{r.GetRun(), strconv.FormatUint(uint64(r.GetStep()), 10), r.GetRequestHash()}, f.version})
			}
		},
		record: func(record []Request) {
			got := map[call]bool{}
			for _, q := range record {
				sum := sha256.Sum256(q.Body)
				got[call{q.Run, q.Step, hex.EncodeToString(sum[:])}] = true
			}
			for _, r := range replies {
				if !got[r.call] {
					say("version %d has a reply to step %s of run %s, and the model server was not asked for it with those bytes (%s)", r.version, r.step, r.run, r.hash)
				}
			}
		},
	}
}
