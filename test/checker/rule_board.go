package checker

import (
	"maps"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// boards: a task's id is used once; it is claimed while it can be, completed by
// its owner while in progress or by the operator while open, fails while open,
// is cancelled while open or failed, is opened again after it was closed, under
// the next revision. When a commit ends, what is not begun has the status that
// its dependencies demand, no task depends on itself, and a team that was
// dissolved leaves none open.
func boards(b *book, say say) watcher {
	dissolved, changed := map[string]bool{}, false
	var made []*rollcallv1.TaskCreated // in this commit; they may name each other
	return watcher{
		event: func(f fact) {
			if t := f.GetTeamDissolved(); t != nil {
				dissolved[t.GetTeam()] = true
			}
			id, _, ok := f.taskEvent()
			if !ok {
				return
			}
			changed = true
			t := b.tasks[id]
			if c := f.GetTaskCreated(); c != nil {
				if t != nil || id == "" {
					say("task %q is made, and a task of that id was before", id)
				}
				made = append(made, c)
				return
			}
			if t == nil {
				say("it is about task %q, which there is not", id)
				return
			}
			if wrong := misplaced(b, f, t); wrong != "" {
				say("task %s is %v: %s", id, t.status, wrong)
			}
		},
		end: func(*rollcallv1.Commit) {
			if !changed && len(dissolved) == 0 {
				return
			}
			changed = false
			for _, c := range made {
				for _, d := range c.GetDependencies() {
					if b.tasks[d] == nil {
						say("task %s depends on task %q, which there is not", c.GetTask(), d)
					}
				}
			}
			made = nil
			for _, id := range slices.Sorted(maps.Keys(b.tasks)) {
				t := b.tasks[id]
				if dissolved[t.team] && t.open() {
					say("task %s is open when the commit ends, and its team %s was dissolved", id, t.team)
				}
				if b.circle(t) {
					say("task %s depends on itself", id)
				} else if want := b.demanded(t); t.unbegun() && t.status != want {
					say("task %s is %v when the commit ends, and its dependencies demand %v", id, t.status, want)
				}
			}
			clear(dissolved)
		},
	}
}

// misplaced says why something cannot happen to a task as it stands.
func misplaced(b *book, f fact, t *task) string {
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_TaskClaimed:
		if t.status != claimable {
			return "it cannot be claimed"
		}
	case *rollcallv1.Event_TaskCompleted:
		by := k.TaskCompleted.GetBy()
		m := b.members[by]
		switch {
		case !t.open():
			return "it cannot be completed again"
		case by != operator && t.status != inProgress:
			return "nobody has claimed it"
		case by != operator && (m == nil || m.name != t.owner):
			return "it belongs to " + t.owner + " and is completed by " + by
		}
	case *rollcallv1.Event_TaskFailed:
		if !t.open() {
			return "it cannot fail"
		}
	case *rollcallv1.Event_TaskReleased:
		if !t.open() {
			return "nobody holds it"
		}
	case *rollcallv1.Event_TaskCancelled:
		if !t.open() && t.status != failed {
			return "it cannot be cancelled"
		}
	case *rollcallv1.Event_TaskReopened:
		if t.open() {
			return "it cannot be opened again"
		}
		next := t.revision + 1
		if t.status == failed && b.takesUp(k.TaskReopened.GetBy(), t.id) {
			next = t.revision // it is tried again, not revised
		}
		if k.TaskReopened.GetRevision() != next {
			return "its next revision was left out"
		}
	case *rollcallv1.Event_TaskPromoted:
		if !t.unbegun() || t.status == k.TaskPromoted.GetStatus() {
			return "its dependencies change nothing"
		}
	case *rollcallv1.Event_TaskBlocked:
		if !t.unbegun() || t.status == blocked && t.reason == k.TaskBlocked.GetReason() {
			return "its dependencies change nothing"
		}
	case *rollcallv1.Event_TaskMarkedStale:
		if t.status != completed {
			return "only what was completed can be stale"
		}
	}
	return ""
}
