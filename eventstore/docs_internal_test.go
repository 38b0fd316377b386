package eventstore

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

var update = flag.Bool("update", false, "write the generated part of docs/subjects.md")

const (
	subjectsDoc = "../docs/subjects.md"
	begin, end  = "<!-- begin: generated from eventstore/streams.go -->\n", "<!-- end -->\n"
)

// docs/subjects.md shows the settings that the code makes.
func TestSubjectsDocument(t *testing.T) {
	raw, err := os.ReadFile(subjectsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(raw), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("docs/subjects.md has lost the marks of its generated part")
	}
	want := describe()
	if *update {
		if err := os.WriteFile(subjectsDoc, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Fatalf("docs/subjects.md differs from the code; run go test ./eventstore -run SubjectsDocument -update\n%s", want)
	}
	for _, prefix := range []string{prefixEvents, prefixIn, prefixCmd, prefixTimer, prefixDue, prefixDead} {
		if !strings.Contains(before, "`"+prefix) {
			t.Errorf("docs/subjects.md does not explain %s", prefix)
		}
	}
}

// Every subject that any package of ours names is in the document.
func TestSubjectsComplete(t *testing.T) {
	raw, err := os.ReadFile(subjectsDoc)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`"(rollcall\.[a-z]+\.)`)
	seen := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "proto" || d.Name() == "tools" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(source), -1) {
			seen++
			if !strings.Contains(string(raw), "`"+m[1]) {
				t.Errorf("%s names %s, docs/subjects.md does not", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 6 {
		t.Fatalf("only %d subjects found in the sources: the search is broken", seen)
	}
}

func describe() string {
	var b strings.Builder
	for _, s := range Streams(Config{}) {
		fmt.Fprintf(&b, "### %s\n\n%s.\n\n| setting | value |\n|---|---|\n", s.Name, s.Description)
		row := func(name string, value any) { fmt.Fprintf(&b, "| %s | %v |\n", name, value) }
		row("subjects", code(s.Subjects...))
		if s.SubjectTransform != nil {
			row("stored as", code(s.SubjectTransform.Destination))
		}
		for _, src := range s.Sources {
			row("also takes from "+src.Name, code(src.SubjectTransforms[0].Source)+" as "+code(src.SubjectTransforms[0].Destination))
		}
		row("storage", fmt.Sprintf("%v, compression %v", s.Storage, s.Compression))
		row("retention", s.Retention)
		row("size limit", fullAt(s))
		row("largest message", bytesOrNone(int64(s.MaxMsgSize)))
		row("messages a subject", limitOrNone(s.MaxMsgsPerSubject))
		row("age limit", durationOrNone(s.MaxAge))
		row("duplicate window", s.Duplicates)
		row("switches", code(switches(s)...))
		b.WriteString("\n")
	}
	c := consumer(Lease{Partition: 7, Epoch: 12})
	fmt.Fprintf(&b, "### Consumers of %s\n\nOne for each partition that is owned, such as `%s` for partition 7 under epoch 12:\nfilter `%s`, deliver policy %v, acknowledgement %v within %v, %s of unacknowledged messages, %s of deliveries, state in %v.\nThat of partition 0 takes `%s` too: what is published to a subject with a literal `*` or `>` is stored as it comes.\n",
		StreamInbox, c.Durable, c.FilterSubject, c.DeliverPolicy, strings.TrimPrefix(c.AckPolicy.String(), "Ack"), c.AckWait,
		limitOrNone(int64(c.MaxAckPending)), limitOrNone(int64(c.MaxDeliver)), consumerStorage(c), consumer(Lease{}).FilterSubjects[1])
	return b.String()
}

func code(all ...string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = "`" + s + "`"
	}
	return strings.Join(out, ", ")
}

func switches(s jetstream.StreamConfig) []string {
	var on []string
	for _, x := range []struct {
		name string
		on   bool
	}{
		{"AllowDirect", s.AllowDirect},
		{"DenyDelete", s.DenyDelete},
		{"DenyPurge", s.DenyPurge},
		{"AllowRollup", s.AllowRollup},
		{"AllowMsgTTL", s.AllowMsgTTL},
		{"AllowMsgSchedules", s.AllowMsgSchedules},
	} {
		if x.on {
			on = append(on, x.name)
		}
	}
	return on
}

func fullAt(s jetstream.StreamConfig) string {
	switch {
	case s.MaxBytes <= 0:
		return "none"
	case s.Discard == jetstream.DiscardNew:
		return bytesOrNone(s.MaxBytes) + "; what does not fit is refused"
	default:
		return bytesOrNone(s.MaxBytes) + "; the oldest go"
	}
}

func bytesOrNone(n int64) string {
	switch {
	case n <= 0:
		return "no limit"
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", n>>10)
	}
}

func limitOrNone(n int64) string {
	if n <= 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}

func durationOrNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

func consumerStorage(c jetstream.ConsumerConfig) jetstream.StorageType {
	if c.MemoryStorage {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}
