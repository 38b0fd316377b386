package domain

import (
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ToolPlan is what the member's open tool call depends on; false when there is
// none.
func (s *State) ToolPlan(member string) (ToolPlan, bool) {
	m := s.Member(member)
	if m == nil || m.Run == nil || m.Run.Phase != InTool || len(m.Run.Calls) == 0 {
		return ToolPlan{}, false
	}
	call := m.Run.Calls[0]
	plan := ToolPlan{
		Key: s.Key, Member: m.view(), Run: m.Run.ID, Step: m.Run.Step,
		Call:  &rollcallv1.ToolCall{Id: call.ID, Name: call.Name, Arguments: call.Arguments},
		Files: map[string]*rollcallv1.Blob{}, Names: s.displayNames(), Mail: m.consumed(),
	}
	if call.Blob != nil {
		plan.Call.ArgumentsBlob = &rollcallv1.Blob{Sha256: call.Blob.SHA256, Size: call.Blob.Size}
	}
	host := s.host(m)
	plan.Home = host.Name
	for _, other := range s.Members {
		if other != host && !other.IsSubagent() {
			plan.Others = append(plan.Others, other.Name)
		}
	}
	for p, blob := range s.Readable(host) {
		plan.Files[p] = &rollcallv1.Blob{Sha256: blob.SHA256, Size: blob.Size}
	}
	return plan, true
}

func (s *State) displayNames() map[string]string {
	names := map[string]string{}
	for _, m := range s.Members {
		names[m.ID] = m.Name
	}
	return names
}

// consumed is what the member is for and the mail of its transcript.
func (m *Member) consumed() []*rollcallv1.MessageRef {
	var mail []*rollcallv1.MessageRef
	for _, p := range m.Purpose {
		if !consumedIn(m.Turns, p.ID) {
			mail = append(mail, p.ref())
		}
	}
	for _, t := range m.Turns {
		for _, e := range t.Entries {
			mail = append(mail, e.context().Mail...)
		}
	}
	return mail
}
