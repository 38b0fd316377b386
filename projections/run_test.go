package projections

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// chain writes hand-made commits to one conversation's log.
type chain struct {
	t   testing.TB
	log *memory.Store
	key domain.Key
	at  eventstore.Position
}

func newChain(t testing.TB, log *memory.Store, conversation, name string) *chain {
	t.Helper()
	c := &chain{t: t, log: log, key: domain.Key{Tenant: "main", Conversation: conversation}}
	c.add(
		domain.NewEvent(&rollcallv1.ConversationOpened{Conversation: conversation, Tenant: "main", Name: name, Contract: "mailbox"}),
		domain.NewEvent(&rollcallv1.MemberAdded{Member: domain.LeadID, Name: domain.LeadName, Role: rollcallv1.MemberRole_MEMBER_ROLE_LEAD, Ready: true}),
	)
	return c
}

// begun is when the first commit of every hand-made log is written; each
// version comes a second later.
var begun = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func (c *chain) add(events ...*rollcallv1.Event) eventstore.Recorded {
	c.t.Helper()
	r, err := c.log.Append(context.Background(), c.key, c.at, &rollcallv1.Commit{
		Time: timestamppb.New(begun.Add(time.Duration(c.at.Version) * time.Second)), Node: "n1", Epoch: 1, Events: events,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.at = r.Position()
	return r
}

func (c *chain) message(id string) eventstore.Recorded {
	c.t.Helper()
	return c.add(domain.NewEvent(&rollcallv1.MessageDelivered{
		Message: id, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, From: domain.Operator, To: domain.LeadID,
		Body: &rollcallv1.Body{Text: "words of " + id},
	}))
}

func mail(t *testing.T, db *DB, key domain.Key) []string {
	t.Helper()
	found, err := db.Mail(t.Context(), key, "", 0, false)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range found {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestRunFollowsAndGoesOn(t *testing.T) {
	log, path := memory.New(), filepath.Join(t.TempDir(), "views.db")
	a := newChain(t, log, "01a", "one")
	db := openAt(t, path)
	stop := following(t, db, log)
	waitFor(t, db, a.key, a.message("msg1").Commit.GetVersion())
	if diff := cmp.Diff([]string{"msg1"}, mail(t, db, a.key)); diff != "" {
		t.Errorf("mail (-want +got):\n%s", diff)
	}
	stop()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	a.message("msg2") // while nobody follows
	db = openAt(t, path)
	defer db.Close()
	stop = following(t, db, log)
	defer stop()
	waitFor(t, db, a.key, a.message("msg3").Commit.GetVersion())
	if diff := cmp.Diff([]string{"msg1", "msg2", "msg3"}, mail(t, db, a.key)); diff != "" {
		t.Errorf("mail after opening again (-want +got):\n%s", diff)
	}
}

func TestWaitFor(t *testing.T) {
	log := memory.New()
	a := newChain(t, log, "01a", "one")
	db := open(t)
	defer following(t, db, log)()

	waited := make(chan error, 1)
	go func() { waited <- db.WaitFor(context.Background(), a.key, 2) }()
	waitFor(t, db, a.key, 1)
	select {
	case err := <-waited:
		t.Fatalf("WaitFor returned %v before version 2 was written", err)
	default:
	}
	a.message("msg1")
	select {
	case err := <-waited:
		if err != nil {
			t.Errorf("WaitFor: %v", err)
		}
	case <-time.After(patience):
		t.Error("WaitFor did not see version 2")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.WaitFor(ctx, a.key, 99); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitFor a version that never comes: %v", err)
	}
	if err := db.WaitFor(ctx, domain.Key{Tenant: "main", Conversation: "99z"}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitFor an unknown conversation: %v", err)
	}
}

func TestQuarantine(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		spoil func(t *testing.T, a *chain)
	}{
		"a gap": {"log-gap", func(t *testing.T, a *chain) {
			inject(t, a, &rollcallv1.Commit{Version: a.at.Version + 2, PreviousHash: a.at.Hash})
		}},
		"a version again": {"log-gap", func(t *testing.T, a *chain) {
			inject(t, a, &rollcallv1.Commit{Version: a.at.Version, PreviousHash: a.at.Hash})
		}},
		"another past": {"log-hash", func(t *testing.T, a *chain) {
			inject(t, a, &rollcallv1.Commit{Version: a.at.Version + 1, PreviousHash: []byte("another")})
		}},
		"a changed byte": {"log-hash", func(t *testing.T, a *chain) {
			raw, err := domain.Seal(&rollcallv1.Commit{Version: a.at.Version + 1, PreviousHash: a.at.Hash, Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			raw[len(raw)/3] ^= 1
			if _, err := a.log.Inject(t.Context(), a.key, raw, true); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run("quarantine/"+name, func(t *testing.T) {
			log, path := memory.New(), filepath.Join(t.TempDir(), "views.db")
			good, bad := newChain(t, log, "01a", "good"), newChain(t, log, "01b", "bad")
			c.spoil(t, bad)
			db := openAt(t, path)
			stop := following(t, db, log)
			waitFor(t, db, good.key, good.message("msg1").Commit.GetVersion())

			check := func(db *DB) {
				t.Helper()
				caughtUp(t, db, log)
				all, err := db.Conversations(t.Context(), "main")
				if err != nil || len(all) != 2 {
					t.Fatalf("%d conversations, %v", len(all), err)
				}
				if all[0].Status == "quarantined" || all[0].Fault != nil {
					t.Errorf("the neighbour: %+v", all[0])
				}
				if all[1].Status != "quarantined" || all[1].Fault == nil || all[1].Fault.Code != c.code || all[1].Fault.Why == "" {
					t.Errorf("the damaged one: %+v, fault %+v", all[1], all[1].Fault)
				}
				if all[1].Version != 1 || all[1].Name != "bad" {
					t.Errorf("what came before the damage is gone: %+v", all[1])
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				refused(t, db.WaitFor(ctx, bad.key, 2), "conversation-quarantined", bad.key.String())
			}
			check(db)
			stop()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			// It stays aside after a restart, and what follows the damage too.
			db = openAt(t, path)
			defer db.Close()
			defer following(t, db, log)()
			inject(t, bad, &rollcallv1.Commit{Version: bad.at.Version + 1, PreviousHash: bad.at.Hash})
			waitFor(t, db, good.key, good.message("msg2").Commit.GetVersion())
			check(db)
		})
	}
}

func inject(t *testing.T, c *chain, commit *rollcallv1.Commit) {
	t.Helper()
	raw, err := domain.Seal(commit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.log.Inject(t.Context(), c.key, raw, true); err != nil {
		t.Fatal(err)
	}
}

func TestAStrangersMessageIsPassedOver(t *testing.T) {
	log := memory.New()
	a := newChain(t, log, "01a", "one")
	if _, err := log.Inject(t.Context(), a.key, []byte("hello"), false); err != nil {
		t.Fatal(err)
	}
	db := open(t)
	defer following(t, db, log)()
	waitFor(t, db, a.key, a.message("msg1").Commit.GetVersion())
	all, err := db.Conversations(t.Context(), "main")
	if err != nil || len(all) != 1 || all[0].Fault != nil || all[0].Version != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAnotherLogIsReadFromItsBeginning(t *testing.T) {
	for name, tc := range map[string]struct {
		other func(log *memory.Store)
		// lost is how the one that the old log knew is shown.
		lost string
	}{
		"that ends earlier": {func(log *memory.Store) { newChain(t, log, "01a", "new") }, "01a new 1 log-tail-lost"},
		"of the same length": {func(log *memory.Store) {
			newChain(t, log, "01a", "new").message("msg1")
		}, ""},
		"that knows the conversation not": {func(log *memory.Store) {
			c := newChain(t, log, "01b", "new")
			c.message("msg1")
			c.message("msg2")
		}, "01a old 0 log-tail-lost"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "views.db")
			before := memory.New()
			a := newChain(t, before, "01a", "old")
			a.message("msg0")
			db := openAt(t, path)
			defer db.Close()
			stop := following(t, db, before)
			waitFor(t, db, a.key, 2)
			stop()

			after := memory.New()
			tc.other(after)
			defer following(t, db, after)()
			eventually(t, db, "the read models are those of the new log", func() bool {
				all, err := db.Conversations(t.Context(), "main")
				if err != nil {
					t.Fatal(err)
				}
				lost, whole := "", false
				for _, c := range all {
					if c.Fault != nil {
						lost = fmt.Sprintf("%s %s %d %s", c.ID, c.Name, c.Version, c.Fault.Code)
					}
					whole = whole || c.Name == "new" && c.Version == last(t, after)
				}
				return whole && lost == tc.lost
			})
		})
	}
}

// A log that was restored to an earlier point may hold our last commit and
// still end before our position.
func TestALogThatWasCutOffIsReadFromItsBeginning(t *testing.T) {
	before, after := memory.New(), memory.New()
	a := newChain(t, before, "01a", "one")
	if _, err := before.Inject(t.Context(), a.key, []byte("a stranger's"), false); err != nil {
		t.Fatal(err)
	}
	for _, i := range read(t, before)[:1] {
		if _, err := after.Append(t.Context(), i.Key, eventstore.Position{}, i.Commit); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t)
	stop := following(t, db, before)
	caughtUp(t, db, before)
	stop()

	b := newChain(t, after, "01b", "two") // at the place of the stranger's message
	defer following(t, db, after)()
	waitFor(t, db, b.key, 1)
	waitFor(t, db, a.key, 1)
}

func last(t *testing.T, log *memory.Store) uint64 {
	t.Helper()
	seq, err := log.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// unreliable is a log whose reading fails every few commits.
type unreliable struct {
	eventstore.Log
	every  int
	failed atomic.Int64
}

func (u *unreliable) Follow(ctx context.Context, seq uint64, fn func(eventstore.Recorded) error, skipped func(uint64, string, error)) error {
	n := 0
	return u.Log.Follow(ctx, seq, func(r eventstore.Recorded) error {
		if n++; n > u.every {
			u.failed.Add(1)
			return errors.New("connection lost")
		}
		return fn(r)
	}, skipped)
}

func TestALogThatFailsIsFollowedAgain(t *testing.T) {
	log := memory.New()
	a := newChain(t, log, "01a", "one")
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprintf("msg%d", i))
		a.message(want[i])
	}
	u := &unreliable{Log: log, every: 4}
	db := open(t)
	defer following(t, db, u)()
	waitFor(t, db, a.key, 9)
	if diff := cmp.Diff(want, mail(t, db, a.key)); diff != "" {
		t.Errorf("mail (-want +got):\n%s", diff)
	}
	if u.failed.Load() == 0 {
		t.Error("the log never failed: the test proves nothing")
	}
}

func TestRunEndsWhenTheFileFails(t *testing.T) {
	log := memory.New()
	newChain(t, log, "01a", "one")
	db := openAt(t, filepath.Join(t.TempDir(), "views.db"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Run(t.Context(), log); err == nil || !strings.Contains(err.Error(), errFile.Error()) {
		t.Errorf("Run on a closed file ended with %v", err)
	}
}
