package domain

import (
	"slices"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Reasons of RunSuspended and codes of RunFinished that the fold knows.
const (
	suspendedPaused = "paused"
	codeByHand      = "interrupted-by-operator"
)

// running is the member if the run is its open one, else nil.
func (s *State) running(member, run string) *Member {
	if m := s.Member(member); m != nil && m.Run != nil && m.Run.ID == run {
		return m
	}
	return nil
}

// applyRun folds what happens in runs and workspaces.
func (s *State) applyRun(e *rollcallv1.Event, at Place) {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_AgentBound:
		s.agentBound(e.AgentBound, at)
	case *rollcallv1.Event_RunStarted:
		s.runStarted(e.RunStarted, at)
	case *rollcallv1.Event_RunSuspended:
		if m := s.running(e.RunSuspended.GetMember(), e.RunSuspended.GetRun()); m != nil {
			switch e.RunSuspended.GetReason() {
			case suspendedPaused:
				m.Run.Phase = Parked
			case suspendedBudget:
				m.Run.Phase, m.Run.Suspended = Reserving, true
			default:
				m.Run.Suspended = true
			}
		}
	case *rollcallv1.Event_RunResumed:
		if m := s.running(e.RunResumed.GetMember(), e.RunResumed.GetRun()); m != nil {
			m.Run.Suspended, m.Run.Resumes = false, e.RunResumed.GetAttempt()
			if m.Run.Phase == Parked || m.Run.Phase == Reserving {
				m.Run.Phase = Deciding
			}
		}
	case *rollcallv1.Event_ModelCallStarted:
		if m := s.running(e.ModelCallStarted.GetMember(), e.ModelCallStarted.GetRun()); m != nil {
			m.Run.callStarted(e.ModelCallStarted, s.Version)
		}
	case *rollcallv1.Event_ModelReplied:
		if m := s.running(e.ModelReplied.GetMember(), e.ModelReplied.GetRun()); m != nil {
			s.modelReplied(m, e.ModelReplied, at)
		}
	case *rollcallv1.Event_ModelCallFailed:
		if m := s.running(e.ModelCallFailed.GetMember(), e.ModelCallFailed.GetRun()); m != nil {
			m.Run.Phase = Deciding
			m.Run.Failures++
		}
	case *rollcallv1.Event_ToolCallStarted:
		if m := s.running(e.ToolCallStarted.GetMember(), e.ToolCallStarted.GetRun()); m != nil {
			m.Run.Phase = InTool
		}
	case *rollcallv1.Event_ToolCallFinished:
		if m := s.running(e.ToolCallFinished.GetMember(), e.ToolCallFinished.GetRun()); m != nil {
			s.finishedCall(m, e.ToolCallFinished)
			s.callFinished(m, e.ToolCallFinished)
			if name := e.ToolCallFinished.GetName(); !e.ToolCallFinished.GetError() && s.boundTool(m.Run.Agent, name).GetOnce() {
				m.Run.Once = append(m.Run.Once, name)
			}
			m.record(Entry{Place: at})
		}
	case *rollcallv1.Event_SubagentStarted:
		s.subagentStarted(e.SubagentStarted)
	case *rollcallv1.Event_RunFinished:
		if m := s.running(e.RunFinished.GetMember(), e.RunFinished.GetRun()); m != nil {
			s.runFinished(m, e.RunFinished, at)
		}
	case *rollcallv1.Event_FileWritten:
		if m := s.Member(e.FileWritten.GetMember()); m != nil {
			if m.Files == nil {
				m.Files = map[string]Blob{}
			}
			m.Files[e.FileWritten.GetPath()] = blobOf(e.FileWritten.GetBlob())
		}
	case *rollcallv1.Event_FileDeleted:
		if m := s.Member(e.FileDeleted.GetMember()); m != nil {
			delete(m.Files, e.FileDeleted.GetPath())
		}
	}
}

// boundTool is the tool of that name which a run that is bound so has; nil when
// it has none.
func (s *State) boundTool(hash, name string) *rollcallv1.ToolDefinition {
	if bound := s.Bindings[hash]; bound != nil {
		for _, t := range bound.Tools {
			if t.GetName() == name {
				return t
			}
		}
	}
	return nil
}

func (s *State) agentBound(e *rollcallv1.AgentBound, at Place) {
	if s.Bindings == nil {
		s.Bindings = map[string]*Binding{}
	}
	s.Bindings[e.GetHash()] = &Binding{
		Place: at, Bytes: uint64(proto.Size(e)), Model: e.GetDefinition().GetModel(), Memory: e.GetDefinition().GetMemory(),
		Budget: budgetOf(e.GetDefinition().GetBudget()), Tools: slices.Clone(e.GetTools()),
	}
}

func (s *State) runStarted(e *rollcallv1.RunStarted, at Place) {
	m := s.Member(e.GetMember())
	if m == nil || m.Run != nil || !m.Alive() {
		return
	}
	if n, ok := numbered(e.GetRun(), runPrefix); ok {
		s.LastRun = max(s.LastRun, n)
	}
	m.Run = &Run{ID: e.GetRun(), Agent: e.GetAgentHash(), Phase: Deciding, Started: s.Time}
	m.Turns = append(m.Turns, &Turn{Run: e.GetRun()})
	m.setStatus(working, s.Time)
	s.began(m)
	s.consume(m, at, e.GetConsumed())
}

func (r *Run) callStarted(e *rollcallv1.ModelCallStarted, version uint64) {
	if e.GetStep() != r.Step {
		r.Failures = 0
	}
	r.Phase, r.Answered, r.CallVersion = Calling, false, version
	r.Step, r.Attempt = e.GetStep(), e.GetAttempt()
}

func (s *State) modelReplied(m *Member, e *rollcallv1.ModelReplied, at Place) {
	r := m.Run
	r.Phase, r.Answered, r.Suspended, r.Resumes = Deciding, true, false, 0
	r.Unanswered = nil
	r.Cut, r.Empty = streak(r.Cut, cutReply(e)), streak(r.Empty, emptyReply(e))
	r.StepCalls = len(r.CallIDs)
	for _, c := range e.GetCalls() {
		call := Call{ID: c.GetId(), Name: c.GetName(), Arguments: c.GetArguments()}
		if c.GetArgumentsBlob() != nil {
			blob := blobOf(c.GetArgumentsBlob())
			call.Blob = &blob
		}
		r.Calls = append(r.Calls, call)
		r.CallIDs = append(r.CallIDs, c.GetId())
	}
	s.Used.add(e.GetUsage())
	r.Used.add(e.GetUsage())
	m.turn().Replied = true
	m.record(Entry{Place: at})
	m.usedBy(e.GetUsage())
}

func (s *State) runFinished(m *Member, e *rollcallv1.RunFinished, at Place) {
	m.record(Entry{Place: at})
	m.closeTurn()
	m.Run = nil
	m.LastReason, m.LastCode, m.LastDetail = e.GetReason(), e.GetCode(), e.GetDetail()
	switch e.GetReason() {
	case rollcallv1.FinishReason_FINISH_REASON_FAILED:
		m.Held = true
		s.Progress++
	case rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET:
		m.Held = true
	case rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED:
		m.Held = e.GetCode() == codeByHand
	}
	if len(m.Waits) > 0 {
		m.setStatus(waiting, s.Time)
	} else {
		m.setStatus(idle, s.Time)
	}
}

func streak(n uint32, goesOn bool) uint32 {
	if goesOn {
		return n + 1
	}
	return 0
}

func blobOf(b *rollcallv1.Blob) Blob { return Blob{SHA256: b.GetSha256(), Size: b.GetSize()} }
