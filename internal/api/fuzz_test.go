package api

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// FuzzWrites: whatever a client sends, a write is a command of its verb, or a
// refusal.
func FuzzWrites(f *testing.F) {
	verbs := (&Server{}).verbs()
	for i, v := range verbs {
		if v.write != nil {
			f.Add(uint8(i), []byte(`{"conversation":"harbor","text":"hi","operation":"add","budget":{"cost":1}}`), false)
		}
	}
	data, err := proto.Marshal(&rollcallv1.CommandRequest{Command: &rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(3), data, true)
	f.Add(uint8(0), []byte("{\"objective\":\"\xff\"}"), false)
	f.Fuzz(func(t *testing.T, n uint8, data []byte, binary bool) {
		v := verbs[int(n)%len(verbs)]
		if v.write == nil {
			return
		}
		req, err := decodeWrite(v, data, binary)
		if err != nil {
			if _, ok := errors.AsType[*domain.Refusal](err); !ok {
				t.Fatalf("%s of %q: %v is no refusal", v.name, data, err)
			}
			return
		}
		if got := verbOf(req.command); got != v.name {
			t.Fatalf("%s of %q made a command of %q", v.name, data, got)
		}
		if !binary {
			if _, err := proto.Marshal(req.command); err != nil {
				t.Fatalf("%s of %q: %v", v.name, data, err)
			}
		}
	})
}

// FuzzReads: a request in protobuf becomes JSON, or a refusal.
func FuzzReads(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\n\x1a\n\x0cconversation\x12\n\x1a\x08harbor.."))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := structJSON(data)
		if err == nil {
			var r MailRequest
			err = decodeJSON(text, &r)
		}
		if err == nil {
			return
		}
		if _, ok := errors.AsType[*domain.Refusal](err); !ok {
			t.Fatalf("%q: %v is no refusal", data, err)
		}
	})
}
