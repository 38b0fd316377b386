package projections

import (
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/eventstore/memory"
)

// story is a log of some hundred commits of three conversations.
func story(b *testing.B) []item {
	log := memory.New()
	w := newWorld(log)
	rapid.Custom(func(rt *rapid.T) int { w.play(rt, 600); return 0 }).Example(1)
	return read(b, log)
}

// BenchmarkRebuild folds a whole log into an empty file.
func BenchmarkRebuild(b *testing.B) {
	items := story(b)
	dir := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		db := openAt(b, filepath.Join(dir, fmt.Sprintf("%d.db", n)))
		for at := 0; at < len(items); at += ahead {
			if err := db.fold(tContext, items[at:min(len(items), at+ahead)]); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(items)*n)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkFollow folds commit by commit, as when a team works.
func BenchmarkFollow(b *testing.B) {
	items := story(b)
	dir := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		db := openAt(b, filepath.Join(dir, fmt.Sprintf("%d.db", n)))
		for at := range items {
			if err := db.fold(tContext, items[at:at+1]); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(items)*n)/b.Elapsed().Seconds(), "commits/s")
}

func BenchmarkConversation(b *testing.B) {
	items := story(b)
	db := open(b)
	if err := db.fold(tContext, items); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.Conversation(tContext, items[0].Key); err != nil {
			b.Fatal(err)
		}
	}
}
