package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/rollcall-dev/rollcall/internal/model/scripted"
)

// Compare holds the report against a model server's own record: every call
// that it saw for this conversation must be one that the log began, with the
// bytes that the log gives, and no step may have been called more often than
// the log began it; and no reply may stand in the log that the server was
// never asked for. Calls of other conversations are left out.
func (r *Report) Compare(record []scripted.Request) {
	type step struct {
		run  string
		step uint32
	}
	begun, seen := map[step]int{}, map[step]int{}
	hashes := map[step]map[string]bool{}
	for at, can := range r.requests {
		s := step{at.run, at.step}
		begun[s]++
		if hashes[s] == nil {
			hashes[s] = map[string]bool{}
		}
		for _, hash := range can {
			hashes[s][hash] = true
		}
	}
	count, asked := 0, map[string]bool{}
	for _, q := range record {
		if q.Conversation != r.Conversation {
			continue
		}
		count++
		n, err := strconv.ParseUint(q.Step, 10, 32)
		if err != nil {
			r.problem(0, "record-odd", "the record has a call of run %s with the step %q", q.Run, q.Step)
			continue
		}
		s := step{q.Run, uint32(n)}
		sum := sha256.Sum256(q.Body)
		asked[hex.EncodeToString(sum[:])] = true
		if seen[s]++; seen[s] > begun[s] {
			r.problem(0, "call-unexplained", "the model server saw call %d of %s, the log began %d", seen[s], name(q.Run, q.Step), begun[s])
		} else if !hashes[s][hex.EncodeToString(sum[:])] {
			r.problem(0, "request-differs", "what the model server was sent for %s is not what the log gives", name(q.Run, q.Step))
		}
	}
	for _, reply := range r.replies {
		if !asked[reply.hash] {
			r.problem(reply.version, "reply-unrecorded", "the reply of %s is in the log, and the model server was never asked for it", reply.attempt)
		}
	}
	r.Recorded = &count
}

func name(run, step string) string { return fmt.Sprintf("run %s, step %s", run, step) }
