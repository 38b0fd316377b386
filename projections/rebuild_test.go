package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var tContext = context.Background()

// read takes what a log holds now.
func read(t testing.TB, log eventstore.Log) []item {
	t.Helper()
	last, err := log.LastSeq(tContext)
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	ctx, stop := context.WithCancel(tContext)
	defer stop()
	take := func(i item) {
		items = append(items, i)
		if i.Seq == last {
			stop()
		}
	}
	if last == 0 {
		return nil
	}
	err = log.Follow(ctx, 0,
		func(r eventstore.Recorded) error { take(item{Recorded: r}); return nil },
		func(seq uint64, _ string, why error) {
			take(item{Recorded: eventstore.Recorded{Seq: seq}, skipped: why})
		})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return items
}

// dump is every row of every table, as text.
func dump(t testing.TB, db *DB) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	err := db.query(tContext, "everything", func(r reader) error {
		tables, err := column(r.ctx, r.tx, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
		if err != nil {
			return err
		}
		for _, table := range tables {
			rows[table] = []string{}
			err := r.rows(func(found *sql.Rows) error {
				columns, err := found.Columns()
				if err != nil {
					return err
				}
				values := make([]any, len(columns))
				for i := range values {
					values[i] = new(any)
				}
				if err := found.Scan(values...); err != nil {
					return err
				}
				var line strings.Builder
				for i, v := range values {
					fmt.Fprintf(&line, "%s=%v ", columns[i], *v.(*any))
				}
				rows[table] = append(rows[table], line.String())
				return nil
			}, "SELECT * FROM "+table)
			if err != nil {
				return err
			}
			slices.Sort(rows[table])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRebuiltEqualsIncremental plays conversations and folds their log twice:
// at once into a fresh file, and bit by bit into another, which is closed and
// opened, killed in the middle of a batch, and given what it has had before.
// Every row of every table must be the same.
func TestRebuiltEqualsIncremental(t *testing.T) {
	dir := t.TempDir()
	files := 0
	told := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(memory.New())
		w.play(rt, rapid.IntRange(40, 150).Draw(rt, "steps"))
		items := w.items(t)
		for kind, n := range w.told {
			told[kind] += n
		}

		files++
		path := filepath.Join(dir, fmt.Sprintf("bits%d.db", files))
		bits := openAt(t, path)
		for at := 0; at < len(items); {
			n := rapid.IntRange(1, 12).Draw(rt, "batch")
			from := max(0, at-rapid.IntRange(0, 3).Draw(rt, "again"))
			batch := items[from:min(len(items), at+n)]
			switch rapid.IntRange(0, 5).Draw(rt, "accident") {
			case 0: // the process ends between two batches
				if err := bits.Close(); err != nil {
					rt.Fatal(err)
				}
				bits = openAt(t, path)
			case 1: // the batch is lost before it is durable
				if err := lost(bits, batch); err != nil {
					rt.Fatal(err)
				}
				continue
			case 2: // states are forgotten, as when there are many
				bits.states = map[domain.Key]*conversation{}
			}
			if err := bits.fold(tContext, batch); err != nil {
				rt.Fatal(err)
			}
			at += n
		}
		whole := openAt(t, filepath.Join(dir, fmt.Sprintf("whole%d.db", files)))
		if len(items) > 0 {
			if err := whole.fold(tContext, items); err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(dump(t, whole), dump(t, bits)); diff != "" {
			rt.Errorf("rebuilt (-) and incremental (+) differ:\n%s", diff)
		}
		w.compare(rt, bits)
		compareHistory(rt, bits, items)
		for _, db := range []*DB{bits, whole} {
			if err := db.Close(); err != nil {
				rt.Fatal(err)
			}
			if err := os.Remove(db.path); err != nil {
				rt.Fatal(err)
			}
		}
	})
	for _, kind := range []string{
		"MemberAdded", "MessageDelivered", "MessagesConsumed", "MessagesReturned", "RunStarted", "RunSuspended", "RunResumed", "RunFinished",
		"ModelReplied", "ModelCallFailed", "ToolCallStarted", "ToolCallFinished", "FileWritten", "TaskCreated", "LeadReplied",
	} {
		if told[kind] == 0 && !t.Failed() {
			t.Errorf("no story had a %s: the test proves too little", kind)
		}
	}
	t.Logf("events: %v", told)
}

// lost folds a batch whose transaction fails in its last message: one of a
// conversation whose row cannot be read.
func lost(db *DB, items []item) error {
	rows := func(statement string) error {
		_, err := db.write.Exec(statement)
		return err
	}
	if err := rows(`INSERT INTO conversations VALUES (1000, 'main', 'broken', '', '', '', 0, 0, 0, '', '', 0, 0, '', '');
		INSERT INTO states VALUES (1000, x'00')`); err != nil {
		return err
	}
	end := items[len(items)-1].Seq + 1_000_000
	broken := item{Recorded: eventstore.Recorded{Key: domain.Key{Tenant: "main", Conversation: "broken"}, Seq: end, Commit: &rollcallv1.Commit{}}}
	if err := db.fold(tContext, append(slices.Clone(items), broken)); !errors.Is(err, errFile) {
		return fmt.Errorf("the lost batch ended with %w", err)
	}
	return rows("DELETE FROM conversations WHERE conv = 1000; DELETE FROM states WHERE conv = 1000")
}

// compare holds what the queries answer against the states of the decider,
// which never saw a row.
func (w *world) compare(t rapid.TB, db *DB) {
	heads, err := db.Conversations(tContext, "main")
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) != len(w.all) {
		t.Fatalf("%d conversations, want %d", len(heads), len(w.all))
	}
	for _, p := range w.all {
		s := p.state
		d, err := db.Conversation(tContext, s.Key)
		if err != nil {
			t.Fatal(err)
		}
		if d.Version != s.Version || d.Status != s.Status() || d.Name != s.Name || d.Contract != s.Contract {
			t.Errorf("conversation %+v, want version %d, status %s, name %q", d.Conversation, s.Version, s.Status(), s.Name)
		}
		compareMembers(t, db, s, d)
		compareBoard(t, s, d)
		if got, want := d.Usage, s.Used; got.Calls != want.Calls || got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens ||
			got.CachedTokens != want.CachedTokens || uint64(got.Cost) != want.CostMicros {
			t.Errorf("usage %+v, want %+v", got, want)
		}
		if (d.Answer != nil) != (s.Answer.Version > 0) || d.Answer != nil && d.Answer.Version != s.Answer.Version {
			t.Errorf("answer %+v, want the one at %+v", d.Answer, s.Answer)
		}
	}
}

func compareMembers(t rapid.TB, db *DB, s *domain.State, d Detail) {
	if len(d.Members) != len(s.Members) {
		t.Fatalf("%d members, want %d", len(d.Members), len(s.Members))
	}
	open := map[string]string{}
	for _, r := range d.Runs {
		if r.Status != "finished" {
			open[r.MemberID] += r.ID + " " + r.Status
		}
	}
	for i, m := range s.Members {
		got := d.Members[i]
		run, openRun := "", ""
		if m.Run != nil {
			run, openRun = m.Run.ID, m.Run.ID+" open"
			if m.Run.Suspended || m.Run.Phase == domain.Parked {
				openRun = m.Run.ID + " suspended"
			}
		}
		if got.ID != m.ID || got.Name != m.Name || got.Status != domain.Word(m.Status) || got.Unread != len(m.Unread) || got.Run != run {
			t.Errorf("member %+v, want %s %s %s with %d unread in run %q", got, m.ID, m.Name, domain.Word(m.Status), len(m.Unread), run)
		}
		if open[m.ID] != openRun {
			t.Errorf("open runs of %s: %q, want %q", m.ID, open[m.ID], openRun)
		}
		unread, err := db.Mail(tContext, s.Key, m.ID, 0, true)
		if err != nil {
			t.Fatal(err)
		}
		var gotMail, wantMail []string
		for _, message := range unread {
			gotMail = append(gotMail, message.ID)
		}
		for _, mail := range m.Unread {
			wantMail = append(wantMail, mail.ID)
		}
		if !slices.Equal(gotMail, wantMail) || got.Mail.Unread != len(wantMail) {
			t.Errorf("unread mail of %s: %v, counted %d, want %v", m.ID, gotMail, got.Mail.Unread, wantMail)
		}
		files, err := db.Files(tContext, s.Key, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		gotFiles := map[string]domain.Blob{}
		for _, f := range files {
			gotFiles[f.Path] = domain.Blob{SHA256: f.SHA256, Size: f.Size}
		}
		if len(gotFiles) != len(m.Files) || len(m.Files) > 0 && !cmp.Equal(gotFiles, m.Files) {
			t.Errorf("files of %s: %v, want %v", m.ID, gotFiles, m.Files)
		}
	}
}

func compareBoard(t rapid.TB, s *domain.State, d Detail) {
	var want TaskCounts
	if len(d.Tasks.List) != len(s.Tasks) {
		t.Fatalf("%d tasks, want %d", len(d.Tasks.List), len(s.Tasks))
	}
	for i, task := range s.Tasks {
		switch {
		case task.Open():
			want.Open++
		case task.Status == rollcallv1.TaskStatus_TASK_STATUS_FAILED:
			want.Failed++
		}
		got := d.Tasks.List[i]
		if got.ID != task.ID || got.Status != domain.Word(task.Status) || got.Owner != task.Owner || got.Result != task.Result ||
			got.Stale != task.Stale || !slices.Equal(got.Dependencies, task.Dependencies) || !got.Updated.Equal(task.Updated) {
			t.Errorf("task %+v, want %+v", got, task)
		}
	}
	if d.Tasks.TaskCounts != want || d.Conversation.Tasks != want {
		t.Errorf("tasks counted %+v and %+v, want %+v", d.Tasks.TaskCounts, d.Conversation.Tasks, want)
	}
}
