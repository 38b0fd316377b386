package eventstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// setting is one thing that is set of a stream, as text.
type setting struct {
	name string
	of   func(jetstream.StreamConfig) any
	// promise: what is acknowledged hangs on it.
	promise bool
	// fixed: the server never changes it, or never back.
	fixed bool
}

// settings are all that provisioning sets but the number of replicas, which is
// only ever raised, and where new sequences begin.
var settings = []setting{
	{name: "subjects", of: func(c jetstream.StreamConfig) any { return c.Subjects }, promise: true},
	{name: "stored as", of: func(c jetstream.StreamConfig) any { return transform(c.SubjectTransform) }, promise: true},
	{name: "also takes from", of: func(c jetstream.StreamConfig) any { return sources(c.Sources) }, promise: true},
	{name: "retention", of: func(c jetstream.StreamConfig) any { return c.Retention }, promise: true, fixed: true},
	{name: "discard", of: func(c jetstream.StreamConfig) any { return c.Discard }, promise: true},
	{name: "storage", of: func(c jetstream.StreamConfig) any { return c.Storage }, promise: true, fixed: true},
	{name: "max age", of: func(c jetstream.StreamConfig) any { return c.MaxAge }, promise: true},
	{name: "max messages", of: func(c jetstream.StreamConfig) any { return c.MaxMsgs }, promise: true},
	{name: "max messages a subject", of: func(c jetstream.StreamConfig) any { return c.MaxMsgsPerSubject }, promise: true},
	{name: "max bytes", of: func(c jetstream.StreamConfig) any { return c.MaxBytes }, promise: true},
	{name: "max message size", of: func(c jetstream.StreamConfig) any { return c.MaxMsgSize }, promise: true},
	{name: "deny delete", of: func(c jetstream.StreamConfig) any { return c.DenyDelete }, promise: true},
	{name: "deny purge", of: func(c jetstream.StreamConfig) any { return c.DenyPurge }, promise: true},
	{name: "allow direct", of: func(c jetstream.StreamConfig) any { return c.AllowDirect }, promise: true},
	{name: "allow rollup", of: func(c jetstream.StreamConfig) any { return c.AllowRollup }, promise: true},
	{name: "allow message TTL", of: func(c jetstream.StreamConfig) any { return c.AllowMsgTTL }, promise: true},
	{name: "allow message schedules", of: func(c jetstream.StreamConfig) any { return c.AllowMsgSchedules }, promise: true},
	{name: "duplicate window", of: func(c jetstream.StreamConfig) any { return c.Duplicates }, promise: true},
	{name: "sealed", of: func(c jetstream.StreamConfig) any { return c.Sealed }, promise: true, fixed: true},
	{name: "max consumers", of: func(c jetstream.StreamConfig) any { return c.MaxConsumers }, fixed: true},
	{name: "compression", of: func(c jetstream.StreamConfig) any { return c.Compression }},
	{name: "description", of: func(c jetstream.StreamConfig) any { return c.Description }},
	{name: "settings version", of: func(c jetstream.StreamConfig) any { return versionOf(c) }},
}

func transform(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return ""
	}
	return t.Source + " as " + t.Destination
}

func sources(all []*jetstream.StreamSource) string {
	var texts []string
	for _, s := range all {
		text := s.Name
		for _, t := range s.SubjectTransforms {
			text += " " + transform(&t)
		}
		texts = append(texts, text+s.FilterSubject)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// differences are the settings that are not as wanted.
func differences(want, have jetstream.StreamConfig, which func(setting) bool) []Change {
	var all []Change
	copied := want
	copied.Replicas = max(want.Replicas, have.Replicas)
	want.Compression = compression(copied)
	for _, s := range settings {
		if w, h := fmt.Sprint(s.of(want)), fmt.Sprint(s.of(have)); w != h && which(s) {
			all = append(all, Change{Stream: want.Name, Setting: s.name, From: h, To: w})
		}
	}
	if have.Replicas < want.Replicas {
		all = append(all, Change{Stream: want.Name, Setting: "replicas", From: strconv.Itoa(have.Replicas), To: strconv.Itoa(want.Replicas)})
	}
	return all
}

// Drift lists what of a stream is not as the promises need it: somebody with the
// right to may have changed it. What a newer program set is its own affair.
func Drift(want, have jetstream.StreamConfig) []string {
	if versionOf(have) > provision {
		return nil
	}
	var odd []string
	for _, c := range differences(want, have, func(s setting) bool { return s.promise }) {
		odd = append(odd, fmt.Sprintf("%s: %s is %s, must be %s", c.Stream, c.Setting, word(c.From), word(c.To)))
	}
	return odd
}

func word(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
