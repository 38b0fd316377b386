package eventstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Versions are found in a log that nobody has read yet, among those of many
// others and messages that are no commits.
func TestAtCold(t *testing.T) {
	s, nc := natsdtest.Store(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	const conversations, commits = 4, 3000
	var keys [conversations]domain.Key
	var pos [conversations]eventstore.Position
	ids := make(map[domain.Key][]string)
	for i := range keys {
		keys[i] = domain.Key{Tenant: "main", Conversation: fmt.Sprint("c", i)}
	}
	for n := range commits {
		// One conversation is busy first and silent later, others the reverse.
		i := rnd.IntN(conversations)
		if n < commits/2 && rnd.IntN(2) == 0 {
			i = 0
		} else if n > commits/2 && i == 0 {
			i = 1
		}
		r, err := s.Append(t.Context(), keys[i], pos[i], &rollcallv1.Commit{Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		pos[i] = r.Position()
		ids[keys[i]] = append(ids[keys[i]], r.Commit.GetId())
		if rnd.IntN(100) == 0 {
			if _, err := (store{s, nc}).Inject(t.Context(), keys[i], []byte("noise"), false); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, cache := range []int{1, 0} { // one that forgets at once, and the default
		cold, err := eventstore.Open(t.Context(), nc, eventstore.Config{CacheBytes: cache})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			for range 10 {
				last := uint64(len(ids[key]))
				v := 1 + rnd.Uint64N(last)
				wanted := []uint64{v, 1, last, max(v, 10) - 9, min(v+3, last)}
				got, err := cold.At(t.Context(), key, wanted)
				if err != nil {
					t.Fatalf("versions %v of %s: %v", wanted, key, err)
				}
				for _, w := range wanted {
					if got[w].GetVersion() != w || got[w].GetId() != ids[key][w-1] {
						t.Fatalf("version %d of %s is %d", w, key, got[w].GetVersion())
					}
				}
			}
		}
	}
}
