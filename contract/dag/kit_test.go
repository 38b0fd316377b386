package dag_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

type args = domaintest.Args

const (
	working = rollcallv1.MemberStatus_MEMBER_STATUS_WORKING
	idle    = rollcallv1.MemberStatus_MEMBER_STATUS_IDLE
	waiting = rollcallv1.MemberStatus_MEMBER_STATUS_WAITING
	gone    = rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN
	unborn  = rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING
)

// member is an entry of team_create.
func member(name string, needs ...string) args {
	return args{"name": name, "brief": "do the part of " + name, "depends_on": append([]string{}, needs...)}
}

// opened is a conversation whose Lead works on the operator's words.
func opened(t *testing.T) *domaintest.Kit {
	t.Helper()
	k := domaintest.Open(t, &domain.Rules{Contracts: contract.All()}, "dag")
	k.Do(domaintest.Say("", "go"))
	return k
}

// declared is a team, the Lead still at work.
func declared(t *testing.T, members ...args) *domaintest.Kit {
	t.Helper()
	k := opened(t)
	k.Acts("lead", "team_create", args{"goal": "build it", "members": members})
	return k
}

// launched is a team whose Lead rests.
func launched(t *testing.T, members ...args) *domaintest.Kit {
	t.Helper()
	k := declared(t, members...)
	k.Ends("lead", "under way")
	return k
}

func deliver(k *domaintest.Kit, id string) []*rollcallv1.Event {
	k.Helper()
	return k.Events(id, domaintest.Call("complete", args{"summary": "the result of " + id}))
}

// delivers lets members deliver, in order, and the Lead read its report.
func delivers(k *domaintest.Kit, ids ...string) {
	k.Helper()
	for _, id := range ids {
		deliver(k, id)
	}
}

func isStatus(t *testing.T, k *domaintest.Kit, want rollcallv1.MemberStatus, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if got := k.Member(id).Status; got != want {
			t.Fatalf("%s is %s, want %s", id, domain.Word(got), domain.Word(want))
		}
	}
}

// isTask checks the states of tasks, as "t1 completed, t2 pending".
func isTask(t *testing.T, k *domaintest.Kit, want string) {
	t.Helper()
	var got []string
	for _, task := range k.State.Tasks {
		line := task.ID + " " + domain.Word(task.Status)
		if task.Stale {
			line += " stale"
		}
		got = append(got, line)
	}
	if all := strings.Join(got, ", "); all != want {
		t.Fatalf("the tasks are %q, want %q", all, want)
	}
}

func contains(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Fatalf("%s is %q, which lacks %q", what, got, part)
		}
	}
}

// reports are the team reports among events.
func reports(events []*rollcallv1.Event) (all []string) {
	for _, m := range domaintest.Delivered(events, "lead") {
		if m.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT {
			all = append(all, m.GetBody().GetText())
		}
	}
	return all
}

// reads are the bodies that the member's open model call shows.
func reads(k *domaintest.Kit, id string) string {
	k.Helper()
	plan, ok := k.State.StepPlan(id)
	if !ok {
		k.Fatalf("%s has no open model call", id)
	}
	var bodies []string
	for _, entry := range plan.Context {
		for _, mail := range entry.Mail {
			bodies = append(bodies, k.Event(mail.GetRef()).GetMessageDelivered().GetBody().GetText())
		}
	}
	return strings.Join(bodies, "\n---\n")
}

// calls counts the model calls of members so far; all of them when none is named.
func calls(k *domaintest.Kit, ids ...string) (n int) {
	for _, e := range k.All() {
		if c := e.GetModelCallStarted(); c != nil && (len(ids) == 0 || slices.Contains(ids, c.GetMember())) {
			n++
		}
	}
	return n
}

func output(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// lost ends a member's run in failure.
func lost(k *domaintest.Kit, id string) []*rollcallv1.Event {
	k.Helper()
	return k.Do(k.ModelFails(id, "model-key-refused", false))
}
