package api

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// FuzzRender: any commit of any release is told as a line of JSON an event.
func FuzzRender(f *testing.F) {
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "m"}
	for _, c := range domaintest.Open(f, rules, "mailbox").Commits {
		raw, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("\x2a\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := new(rollcallv1.Commit)
		if proto.Unmarshal(raw, c) != nil {
			return
		}
		names := Names{}
		names.Add(c)
		lines := Render("x", c, names.Of)
		if len(lines) != len(c.GetEvents()) {
			t.Fatalf("%d lines of %d events", len(lines), len(c.GetEvents()))
		}
		for _, line := range lines {
			text, err := Marshal(line)
			if err != nil || !utf8.Valid(text) || line.Event == "" {
				t.Fatalf("%+v: %v", line, err)
			}
			var again EventLine
			if err := json.Unmarshal(text, &again); err != nil || again.Event != line.Event || again.Version != line.Version {
				t.Fatalf("%s is read as %+v, %v", text, again, err)
			}
		}
	})
}
