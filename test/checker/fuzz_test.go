package checker_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// FuzzCommits: no commits, whatever they hold, bring the checker down, and each
// finding is a sentence. The chain is made whole, so that every rule reads on.
func FuzzCommits(f *testing.F) {
	add := func(h *hand) {
		page := &pb.LogPage{Conversation: conversation, Tenant: tenant}
		for _, c := range h.log(f).Commits {
			page.Commits = append(page.Commits, c.Sealed)
		}
		data, err := proto.Marshal(page)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, version := range []int{1, 3, 8, 12, 22, 28, 48} {
		h := story()
		h.until(version)
		add(h)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page := new(pb.LogPage)
		if proto.Unmarshal(data, page) != nil {
			return
		}
		h := story()
		h.commits = nil
		for _, raw := range page.GetCommits() {
			c := new(pb.Commit)
			if proto.Unmarshal(raw, c) != nil {
				continue
			}
			c.Version = uint64(len(h.commits)) + 1
			h.commits = append(h.commits, c)
		}
		h.astray = true
		l := h.log(t)
		found := checker.CheckAll([]checker.Log{l, {Commits: []checker.Stored{{Sealed: data}}}}, h.record)
		for _, one := range found {
			if one.What == "" || strings.Contains(one.String(), "%!") || !slices.Contains(checker.Rules(), one.Rule) {
				t.Errorf("a finding that nobody understands: %v", one)
			}
		}
	})
}
