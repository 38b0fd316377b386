package dag

import (
	"encoding/json"

	"github.com/rollcall-dev/rollcall/domain"
)

// maxStatus keeps a status within what one tool output may hold, in bytes.
const maxStatus = 20 << 10

// maxSummary is what a status shows of one delivery, in bytes; a delivery is
// shown in full to those who depend on it.
const maxSummary = 600

type status struct {
	Goal    string         `json:"goal,omitempty"`
	Team    string         `json:"team"`
	Members []memberStatus `json:"members"`
	// Omitted counts delivered and cancelled members that did not fit.
	Omitted int `json:"omitted,omitempty"`
}

type memberStatus struct {
	Name      string   `json:"name"`
	AgentType string   `json:"agent_type"`
	Status    string   `json:"status"`
	Task      string   `json:"task"`
	DependsOn []string `json:"depends_on,omitempty"`
	WaitsFor  string   `json:"waits_for,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Failure   string   `json:"failure,omitempty"`
	Stale     string   `json:"stale,omitempty"`
	Revision  uint32   `json:"revision,omitempty"`
	Summary   string   `json:"summary,omitempty"`
	Paths     []string `json:"paths,omitempty"`
}

func teamStatus(d *domain.Decision, _ noArgs) (any, *domain.Refusal) { return statusOf(d), nil }

// statusOf shows the members of the conversation's newest team. When not all
// fit, those with open work come first.
func statusOf(d *domain.Decision) status {
	s := d.State()
	out := status{Team: "none", Members: []memberStatus{}}
	if len(s.Teams) == 0 {
		return out
	}
	team := s.Teams[len(s.Teams)-1]
	out.Team, out.Goal = "dissolved", domain.Shorten(team.Goal, maxSummary)
	if team.Active {
		out.Team = "active"
	}
	shown, room := map[*domain.Member]memberStatus{}, maxStatus
	for _, open := range []bool{true, false} {
		for _, m := range s.Members {
			t := s.Task(m.Task)
			if t == nil || m.Team != team.ID || (t.Open() || t.Stale) != open {
				continue
			}
			line := memberOf(s, m, t)
			data, err := json.Marshal(line)
			if room -= len(data); err == nil && room >= 0 {
				shown[m] = line
			} else {
				out.Omitted++
			}
		}
	}
	for _, m := range s.Members {
		if line, ok := shown[m]; ok {
			out.Members = append(out.Members, line)
		}
	}
	return out
}

func memberOf(s *domain.State, m *domain.Member, t *domain.Task) memberStatus {
	line := memberStatus{
		Name: m.Name, AgentType: m.AgentType, Status: domain.Word(m.Status), Task: domain.Word(t.Status), Reason: domain.Shorten(t.Reason, maxSummary),
		Failure: domain.Shorten(t.Failure, maxSummary), Stale: t.StaleReason, Revision: t.Revision, Summary: domain.Shorten(t.Result, maxSummary), Paths: s.DeliveredPaths(t),
	}
	for _, id := range t.Dependencies {
		if dep := s.Task(id); dep != nil {
			line.DependsOn = append(line.DependsOn, dep.Owner)
		}
	}
	if len(m.Waits) > 0 {
		line.WaitsFor = s.DisplayName(m.Waits[0].Awaited) + ", to answer " + m.Waits[0].Message
	}
	return line
}
