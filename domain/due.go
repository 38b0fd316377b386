package domain

// Due lists the work owed: calls that are started and have no outcome. It is
// empty exactly when the conversation is quiescent: whatever unread mail could
// start was started by the command that brought it. A node that just loaded the
// state takes each up with a ResumeRun: nobody works on them.
func Due(s *State) []Work {
	var owed []Work
	for _, m := range s.Members {
		if m.Run == nil {
			continue
		}
		w := Work{Member: m.ID, Run: m.Run.ID, Step: m.Run.Step, Attempt: m.Run.Attempt}
		switch m.Run.Phase {
		case Calling:
			w.Kind = CallModel
		case InTool:
			w.Kind = CallTool
			w.Call = m.Run.Calls[0].ID
		default:
			continue
		}
		owed = append(owed, w)
	}
	return owed
}

// ArmedTimers lists the timers to arm in the store, after a load and after a
// commit; arming one again is harmless. To wait for a timer is to be quiescent,
// so they are not in Due.
func ArmedTimers(s *State) []Work {
	var armed []Work
	for _, t := range s.Timers {
		armed = append(armed, Work{Kind: ArmTimer, Member: t.Subject, Timer: t.ID, Due: t.Due})
	}
	return armed
}
