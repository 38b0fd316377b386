package domain_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
)

// FuzzState: a snapshot that can be read is written again to one that is equal.
// What is in it need make no sense: its hash is checked before it counts.
func FuzzState(f *testing.F) {
	s := domain.New(domaintest.Key)
	for _, c := range history(f) {
		s.Evolve(c)
	}
	data, err := s.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	for _, text := range []string{`{}`, `null`, `{"Members":[null]}`, `{"Time":"x"}`, `{"Version":-1}`, `{"Name":"\ud83d"}`, "\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := domain.Unmarshal(data)
		if err != nil {
			return
		}
		first, err := s.Marshal()
		if err != nil {
			return // such as a time that no calendar has
		}
		back, err := domain.Unmarshal(first)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", data, first, err)
		}
		if back.Hash() != s.Hash() {
			t.Errorf("%q is written as %q and comes back unequal", data, first)
		}
	})
}
