package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/projections"
)

// contractDag is the contract of members with one assignment each.
const contractDag = "dag"

// showTasks lists the board. Where members have assignments, it lists who has
// which, and whose deliveries each needs.
func showTasks(w io.Writer, d api.Detail) {
	if len(d.Tasks.List) == 0 {
		return
	}
	if d.Contract == contractDag {
		showAssignments(w, d)
		return
	}
	fmt.Fprintln(w, "\ntasks")
	rows := [][]string{{"  ID", "STATUS", "OWNER", "AFTER", "TITLE"}}
	for _, t := range d.Tasks.List {
		rows = append(rows, []string{"  " + t.ID, taskStatus(t), orDash(t.Owner), orDash(strings.Join(t.Dependencies, ",")), t.Title + because(t.Reason)})
	}
	table(w, rows)
}

func showAssignments(w io.Writer, d api.Detail) {
	fmt.Fprintln(w, "\nassignments")
	rows := [][]string{{"  TASK", "MEMBER", "STATUS", "NEEDS", "ABOUT"}}
	for _, t := range d.Tasks.List {
		var needs []string
		for _, dep := range t.Dependencies {
			needs = append(needs, assignee(d.Tasks.List, dep))
		}
		about := t.Title
		if t.Stale {
			about += because(t.StaleReason)
		} else {
			about += because(t.Reason)
		}
		rows = append(rows, []string{"  " + t.ID, orDash(t.Owner), taskStatus(t), orDash(strings.Join(needs, ", ")), about})
	}
	table(w, rows)
}

func taskStatus(t projections.Task) string {
	status := t.Status
	if t.Revision > 0 {
		status += fmt.Sprintf(" (revision %d)", t.Revision)
	}
	if t.Stale {
		status += " (stale)"
	}
	return status
}

// assignee is who has a task; the task where nobody has it.
func assignee(tasks []projections.Task, id string) string {
	for _, t := range tasks {
		if t.ID == id && t.Owner != "" {
			return t.Owner
		}
	}
	return id
}

// showWaits says who sleeps until whom: on an answer, or on a delivery.
func showWaits(w io.Writer, d api.Detail) {
	var lines []string
	for _, one := range d.Waits {
		lines = append(lines, fmt.Sprintf("%s waits for %s to answer %s", one.Member, one.For, one.Message))
	}
	if d.Contract == contractDag {
		for _, t := range d.Tasks.List {
			if t.Status == "pending" || t.Status == "blocked" {
				lines = append(lines, undelivered(d.Tasks.List, t)...)
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w, "\nwaits")
	for _, l := range lines {
		fmt.Fprintln(w, "  "+oneLine(l, 200))
	}
}

// undelivered are the deliveries that a task still needs, one a line.
func undelivered(tasks []projections.Task, t projections.Task) (lines []string) {
	for _, dep := range tasks {
		for _, id := range t.Dependencies {
			if id != dep.ID || dep.Status == "completed" {
				continue
			}
			line := fmt.Sprintf("%s waits for %s to deliver %s", orDash(t.Owner), orDash(dep.Owner), dep.ID)
			if dep.Status == "failed" || dep.Status == "cancelled" {
				line += ", which is " + dep.Status
			}
			lines = append(lines, line)
		}
	}
	return lines
}
