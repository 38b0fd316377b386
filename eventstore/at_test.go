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
	const conversations, commits = 8, 6000
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
			for range 20 {
				v := uint64(1 + rnd.IntN(len(ids[key])))
				last := uint64(len(ids[key]))
				got, err := cold.At(t.Context(), key, []uint64{v, 1, last})
				if err != nil {
					t.Fatalf("versions %d, 1 and %d of %s: %v", v, last, key, err)
				}
				for _, w := range []uint64{v, 1, last} {
					if got[w].GetVersion() != w || got[w].GetId() != ids[key][w-1] {
						t.Fatalf("version %d of %s is %d", w, key, got[w].GetVersion())
					}
				}
			}
		}
	}
}
