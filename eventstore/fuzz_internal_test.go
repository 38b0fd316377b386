package eventstore

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// Whatever lies in the bucket is a snapshot or an error.
func FuzzSnapshot(f *testing.F) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("state"))
	_ = w.Close()
	f.Add(packed.Bytes(), "3", "7", "00ff", "1")
	f.Add([]byte("no archive"), "3", "7", "00ff", "1")
	f.Add(packed.Bytes(), "-3", "", "xyz", "99999999999")
	f.Fuzz(func(t *testing.T, packed []byte, version, seq, hash, evolve string) {
		s, err := unpackSnapshot(packed, map[string]string{metaVersion: version, metaSeq: seq, metaHash: hash, metaEvolve: evolve})
		if err == nil && len(s.Position.Hash)*2 != len(hash) {
			t.Errorf("hash %x from %q", s.Position.Hash, hash)
		}
	})
}

// The server's own headers stand behind those of the message and win.
func FuzzDirectAnswer(f *testing.F) {
	f.Add("", "", "7", "rollcall.events.1.a.b", "2026-01-02T03:04:05.123456789Z")
	f.Add("204", "EOB", "", "", "")
	f.Add("503", "", "1", "x", "not a time")
	f.Fuzz(func(t *testing.T, status, forged, seq, subject, at string) {
		m := &nats.Msg{Header: nats.Header{}}
		for name, values := range map[string][]string{
			"Status": {status}, "Nats-Sequence": {forged, seq}, "Nats-Subject": {forged, subject}, "Nats-Time-Stamp": {at},
		} {
			for _, v := range values {
				if v != "" {
					m.Header.Add(name, v)
				}
			}
		}
		s, end, err := parseDirect(m)
		if err == nil && !end && (s.subject != lastHeader(m.Header, "Nats-Subject") || s.time.IsZero() && !strings.HasPrefix(at, "0001")) {
			t.Errorf("parsed %+v", s)
		}
		if seq != "" && subject != "" && err == nil && s.subject != subject {
			t.Errorf("a forged subject won: %+v", s)
		}
	})
}
