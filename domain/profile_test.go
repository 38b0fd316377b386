package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	isPending    = rollcallv1.TaskStatus_TASK_STATUS_PENDING
	isClaimable  = rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE
	isInProgress = rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	isCompleted  = rollcallv1.TaskStatus_TASK_STATUS_COMPLETED
	isFailed     = rollcallv1.TaskStatus_TASK_STATUS_FAILED
	isBlocked    = rollcallv1.TaskStatus_TASK_STATUS_BLOCKED
	isCancelled  = rollcallv1.TaskStatus_TASK_STATUS_CANCELLED
)

// profile is the team in three notebooks: t1 of Backend, t2 and t3 of
// Frontend, t3 needing both. Both work, and have claimed their first task.
func profile(t *testing.T) *domaintest.Kit {
	t.Helper()
	k := team(t, "Backend", "Frontend")
	k.Do(domaintest.Say("", "a profile page that shows Ada"))
	k.Act("lead",
		domaintest.Call("task_create", args{"title": "API", "description": "d", "owner": "Backend"}),
		domaintest.Call("task_create", args{"title": "layout", "description": "d", "owner": "Frontend"}),
		domaintest.Call("task_create", args{"title": "binding", "description": "d", "owner": "Frontend", "dependencies": []string{"t1", "t2"}}))
	k.Ends("lead", "under way")
	k.Acts("m1", "task_update", args{"task_id": "t1", "owner": "Backend", "status": "in_progress"})
	k.Acts("m2", "task_update", args{"task_id": "t2", "owner": "Frontend", "status": "in_progress"})
	return k
}

func TestProfile(t *testing.T) {
	t.Run("profile-send-update", func(t *testing.T) {
		k := profile(t)
		mustEqual(t, "t1", k.Task("t1").Status, isInProgress)
		mustEqual(t, "t2", k.Task("t2").Status, isInProgress)
		k.Act("m1", domaintest.Call("task_complete", args{"task_id": "t1", "result": "API is up"}),
			domaintest.Call("send_message", args{"to": "Frontend", "text": "read display_name"}))
		mustEqual(t, "t3 while t2 is open", k.Task("t3").Status, isPending)
		events := k.Do(k.Reply("m2", "", domaintest.Call("task_complete", args{"task_id": "t2", "result": "laid out"})))
		mustEqual(t, "t3", k.Task("t3").Status, isClaimable)
		mustEqual(t, "promotions", domaintest.Count(events, "TaskPromoted"), 1)
		all := texts(k, "m2")
		mustContain(t, "what Frontend reads", strings.Join(all, "\n"), "read display_name", "t3", "API is up", "laid out")
	})
	t.Run("profile-completed-is-not-delivered", func(t *testing.T) {
		k := profile(t)
		k.Act("m1", domaintest.Call("task_complete", args{"task_id": "t1", "result": "API is up"}),
			domaintest.Call("send_message", args{"to": "Frontend", "text": "read display_name"}))
		mustEqual(t, "t1", k.Task("t1").Status, isCompleted)
		mustEqual(t, "mail of Frontend", len(k.Member("m2").Unread), 1)
		if all := strings.Join(texts(k, "m2"), "\n"); strings.Contains(all, "display_name") {
			t.Fatalf("Frontend was shown %q before it received it", all)
		}
	})
	t.Run("profile-message-elsewhere", func(t *testing.T) {
		k := profile(t)
		k.Act("m1", domaintest.Call("send_message", args{"to": "Frontend", "text": "read display_name"}),
			domaintest.Call("send_message", args{"to": "Lead", "text": "for the Lead alone"}))
		k.Act("m2", domaintest.Call("task_list", args{}))
		mustContain(t, "Frontend reads", strings.Join(texts(k, "m2"), "\n"), "display_name")
		for member, alien := range map[string]string{"lead": "display_name", "m1": "display_name", "m2": "for the Lead alone"} {
			if all := strings.Join(texts(k, member), "\n"); strings.Contains(all, alien) {
				t.Errorf("%s was shown %q", member, alien)
			}
		}
	})
	t.Run("profile-two-claims", func(t *testing.T) {
		k := profile(t)
		text := k.Fails("m2", "task_update", args{"task_id": "t1", "owner": "Frontend", "status": "in_progress"})
		mustContain(t, "refusal", text, "Backend", "[task-claimed]")
		mustContain(t, "without a name", k.Fails("m2", "task_update", args{"task_id": "t1", "status": "in_progress"}), "Backend", "[task-claimed]")
		mustEqual(t, "owner", k.Task("t1").Owner, "Backend")
		mustContain(t, "completion by another", k.Fails("m2", "task_complete", args{"task_id": "t1", "result": "x"}), "Backend", "[task-not-yours]")
	})
	t.Run("profile-one-prerequisite", func(t *testing.T) {
		k := profile(t)
		k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "up"})
		mustEqual(t, "t3", k.Task("t3").Status, isPending)
		mustContain(t, "claim", k.Fails("m2", "task_update", args{"task_id": "t3", "owner": "Frontend", "status": "in_progress"}), "t2", "[task-not-claimable]")
		mustContain(t, "completion", k.Fails("m2", "task_complete", args{"task_id": "t3", "result": "x"}), "t2", "[task-not-claimable]")
	})
	t.Run("profile-empty-mailbox", func(t *testing.T) {
		k := profile(t)
		before := texts(k, "m2")
		k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "up"})
		k.Acts("m2", "task_list", args{})
		mustBe(t, "what Frontend reads", texts(k, "m2"), before)
	})
	t.Run("profile-idle-at-end", func(t *testing.T) {
		k := profile(t)
		k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "up"})
		k.Ends("m1", "done")
		k.Acts("m2", "task_complete", args{"task_id": "t2", "result": "laid out"})
		k.Acts("m2", "task_complete", args{"task_id": "t3", "result": "bound to name"})
		k.Act("m2", domaintest.Call("send_message", args{"to": "Lead", "text": "bound to name"}))
		k.Ends("m2", "done")
		k.Ends("lead", "it shows Ada")
		for _, m := range k.State.Members {
			mustEqual(t, m.Name, m.Status, isIdle)
			mustEqual(t, "unread of "+m.Name, len(m.Unread), 0)
		}
		mustEqual(t, "due", len(domain.Due(k.State)), 0)
		mustEqual(t, "verdict", k.State.Verdict().Exit, 0)
		k.Do(domaintest.Say("m2", "make the name bold"))
		mustContain(t, "the transcript goes on", strings.Join(texts(k, "m2"), "\n"), "you are Frontend", "make the name bold")
	})
}

func TestProfileDuplicateDelivery(t *testing.T) {
	t.Run("profile-duplicate-delivery", func(t *testing.T) {
		k := team(t, "Worker")
		say := domaintest.Say("m1", "only once")
		say.Id = "client-key"
		first, _ := k.Try(say)
		for range 2 {
			again, refusal := k.Try(say)
			if refusal != nil || !again.Duplicate || again.Version != first.Version || again.Subject != first.Subject {
				t.Fatalf("the same id again: %+v %v, want the first answer %+v", again, refusal, first)
			}
			k.Restart()
		}
		n := strings.Count(strings.Join(texts(k, "m1"), "\n"), "only once")
		mustEqual(t, "times in the context", n, 1)
	})
}
