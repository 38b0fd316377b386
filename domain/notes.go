package domain

import (
	"fmt"
	"strings"
)

// What the framework says to members. Each text is part of the log; a change
// concerns later messages only.

const (
	emptyNote      = "Your last reply had neither text nor a tool call. Go on with the work, or end your turn with a short text."
	budgetNote     = "The budget was raised. Your last turn had been stopped by it: go on where you were."
	unknownOutcome = "Outcome unknown: the node was lost while this call ran, and it may or may not have taken effect. Verify first; repeat it only if it did not."
)

func cutNote(finish string) string {
	switch finish {
	case "content_filter":
		return "Your last reply was cut off by the model's content filter. None of its tool calls was run. Say it otherwise."
	case finishTooLarge:
		return fmt.Sprintf("Your last reply had more than %d tool calls, or more than %d KiB in them. None of them was run. Make fewer calls at once, and write long files in parts.", maxReplyCalls, maxArguments>>10)
	}
	return "Your last reply was cut off at the length limit. None of its tool calls was run. Do less in one reply; write long texts to files in parts."
}

func retryNote(m *Member) string {
	text := "The operator asks you to try again."
	if m.LastDetail != "" {
		text += " Your last turn ended because: " + m.LastDetail + "."
	}
	return text + " Check what has been done, then go on."
}

func goneNote(w *Wait, asked *Member) string {
	return fmt.Sprintf("Nobody is left to answer your question %s: %s was shut down. Go on without the answer, or ask somebody else.", w.Message, asked.Name)
}

func failedNote(w *Wait, asked *Member) string {
	return fmt.Sprintf("Nobody answers your question %s for now: %s failed (%s). Go on without the answer, or ask somebody else. Writing to %s makes it try again.",
		w.Message, asked.Name, failure(asked), asked.Name)
}

func unansweredNote(s *State, m *Member, w *Wait, asked *Member) string {
	if asked.IsLead() {
		return fmt.Sprintf("%s still waits for your answer to %s. Answer with a message that has reply_to %q.", m.Name, w.Message, w.Message)
	}
	text := fmt.Sprintf("%s waits for %s to answer %s. %s has read it and rests without answering.", m.Name, asked.Name, w.Message, asked.Name)
	if len(asked.Waits) > 0 {
		text = fmt.Sprintf("%s waits for %s to answer %s, and %s waits for %s: a circle.", m.Name, asked.Name, w.Message,
			asked.Name, s.DisplayName(asked.Waits[0].Awaited))
	}
	return text + fmt.Sprintf(" Answer %s yourself with reply_to %q, or tell %s to.", m.Name, w.Message, asked.Name)
}

func heldNote(m *Member, w *Wait, asked *Member) string {
	why := "used up its budget"
	if !asked.outOfBudget() {
		why = "was interrupted"
	}
	return fmt.Sprintf("%s waits for %s to answer %s. %s %s and rests; writing to it lets it go on. Answer %s yourself with reply_to %q, or write to %s.",
		m.Name, asked.Name, w.Message, asked.Name, why, m.Name, w.Message, asked.Name)
}

func failure(m *Member) string {
	if m.LastDetail == "" {
		return m.LastCode
	}
	return strings.TrimSuffix(m.LastCode+": "+m.LastDetail, ".")
}

// taskLine is a task on one line: everything but its result.
func taskLine(t *Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %s", t.ID, t.Title, Word(t.Status))
	if t.Owner != "" {
		fmt.Fprintf(&b, ", owner %s", t.Owner)
	}
	if len(t.Dependencies) > 0 {
		fmt.Fprintf(&b, ", needs %s", strings.Join(t.Dependencies, ", "))
	}
	if t.Stale {
		fmt.Fprintf(&b, ", stale: %s", t.StaleReason)
	}
	if t.Reason != "" {
		fmt.Fprintf(&b, ", because %s", cut(t.Reason, 300))
	}
	return b.String()
}

// readyText tells an owner that its task can start, with what it builds on. It
// has about room bytes; what does not fit is read with task_get.
func readyText(s *State, t *Task, room int) string {
	var b strings.Builder
	switch t.Status {
	case inProgress:
		fmt.Fprintf(&b, "Task %s %q is now yours and in progress.", t.ID, t.Title)
	default:
		fmt.Fprintf(&b, "Task %s %q is yours and can start.", t.ID, t.Title)
	}
	if t.Description != "" {
		fmt.Fprintf(&b, "\n%s", cut(t.Description, room/4))
	}
	if len(t.Dependencies) > 0 {
		b.WriteString("\nWhat it builds on:")
	}
	share := room * 3 / 4 / max(len(t.Dependencies), 1)
	for i, id := range t.Dependencies {
		dep := s.Task(id)
		if dep == nil {
			continue
		}
		if b.Len() > room {
			fmt.Fprintf(&b, "\n- %d more that do not fit here", len(t.Dependencies)-i)
			break
		}
		fmt.Fprintf(&b, "\n- %s %q", dep.ID, dep.Title)
		if dep.Stale {
			fmt.Fprintf(&b, " (stale: %s)", dep.StaleReason)
		}
		if dep.Result != "" {
			fmt.Fprintf(&b, ": %s", cut(dep.Result, share))
		}
		if paths := s.DeliveredPaths(dep); len(paths) > 0 {
			fmt.Fprintf(&b, "\n  files: %s", cut(strings.Join(paths, ", "), max(share/2, 200)))
		}
	}
	return b.String()
}

// DeliveredPaths are the paths of a delivery as other members read them.
func (s *State) DeliveredPaths(t *Task) []string {
	var paths []string
	by := s.Member(t.CompletedBy)
	for _, p := range t.Paths {
		if by != nil {
			if _, own := by.Files[p]; own {
				p = by.Name + "/" + p
			}
		}
		paths = append(paths, p)
	}
	return paths
}
