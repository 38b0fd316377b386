package eventstore

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Drift lists what of a stream is not as the promises need it: somebody with the
// right to may have changed it.
func Drift(want, have jetstream.StreamConfig) []string {
	var odd []string
	for _, x := range []struct {
		what       string
		want, have any
	}{
		{"subjects", want.Subjects, have.Subjects},
		{"retention", want.Retention, have.Retention},
		{"discard", want.Discard, have.Discard},
		{"storage", want.Storage, have.Storage},
		{"max age", want.MaxAge, have.MaxAge},
		{"max messages", want.MaxMsgs, have.MaxMsgs},
		{"max messages a subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject},
		{"max bytes", want.MaxBytes, have.MaxBytes},
		{"deny delete", want.DenyDelete, have.DenyDelete},
		{"deny purge", want.DenyPurge, have.DenyPurge},
		{"allow direct", want.AllowDirect, have.AllowDirect},
		{"duplicate window", want.Duplicates, have.Duplicates},
		{"sealed", want.Sealed, have.Sealed},
	} {
		if w, h := fmt.Sprint(x.want), fmt.Sprint(x.have); w != h {
			odd = append(odd, fmt.Sprintf("%s: %s is %s, must be %s", want.Name, x.what, h, w))
		}
	}
	if have.Replicas < want.Replicas {
		odd = append(odd, fmt.Sprintf("%s: %d replicas, must be %d", want.Name, have.Replicas, want.Replicas))
	}
	return odd
}
