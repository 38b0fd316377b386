package domain

import (
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// EvolveVersion is the version of the fold: what the events there are do to the
// state. Every commit says with which one it was decided. A snapshot made by
// another version does not count, and on a commit of a newer one nothing is
// decided: see [State.Understood]. Raise it with every new kind of event, every
// new field of one and every change of what one does.
const EvolveVersion uint32 = 4

// State is a conversation at one version: plain data, changed only by events.
// It belongs to one goroutine at a time. It holds no long text: bodies stay in
// the log, at a [Place].
type State struct {
	Key Key
	// Version, LastHash, Epoch and Time are those of the newest commit.
	Version  uint64
	LastHash []byte `json:",omitempty"`
	Epoch    uint64 `json:",omitempty"`
	Time     time.Time
	// Newer is the version of a fold that this program does not have and the log
	// asks for; 0 when it understands all of the log.
	Newer uint32 `json:",omitempty"`

	// Opened is false before the first commit.
	Opened    bool                                   `json:",omitempty"`
	Name      string                                 `json:",omitempty"`
	Contract  string                                 `json:",omitempty"`
	LeadAgent string                                 `json:",omitempty"`
	Agents    map[string]*rollcallv1.AgentDefinition `json:",omitempty"`
	Paused    bool                                   `json:",omitempty"`

	Budget Budget
	Used   Usage

	// Members in the order they joined, those shut down too: the Lead first,
	// then m1, m2, ...
	Members []*Member `json:",omitempty"`
	Teams   []*Team   `json:",omitempty"`
	// Tasks in the order they were made: t1, t2, ...
	Tasks  []*Task  `json:",omitempty"`
	Timers []*Timer `json:",omitempty"`
	// Approvals that are pending, and the newest of those that ended, in the
	// order they were asked for: a1, a2, ...
	Approvals      []*Approval     `json:",omitempty"`
	LastApproval   uint64          `json:",omitempty"`
	ApprovalPolicy *ApprovalPolicy `json:",omitempty"`
	// Bindings by hash: every AgentBound event so far.
	Bindings map[string]*Binding `json:",omitempty"`

	// Answer is where the Lead's last word to the operator stands; its Version
	// is 0 when there is none.
	Answer Place

	// LastMessage and LastRun number the ids given so far.
	LastMessage uint64 `json:",omitempty"`
	LastRun     uint64 `json:",omitempty"`
	// Subagents counts those started so far.
	Subagents uint64 `json:",omitempty"`
	// Progress counts task events, operator mail and failures. Reported is its
	// value when the Lead last got a team report. Reports counts the reports
	// since the operator last wrote or a member delivered.
	Progress uint64 `json:",omitempty"`
	Reported uint64 `json:",omitempty"`
	Reports  int    `json:",omitempty"`
	// Runs counts those begun since the operator's last word. LoopTold is
	// Progress+1 when it was last told that mail was quieted. Guards counts what
	// the guards stopped or told, by guard.
	Runs     int               `json:",omitempty"`
	LoopTold uint64            `json:",omitempty"`
	Guards   map[string]uint64 `json:",omitempty"`

	// Commands are the newest commands that had an effect, oldest first.
	Commands []Effect `json:",omitempty"`

	effects map[string]Effect
}

// Effect is what became of a command, kept so that the same id again does nothing.
type Effect struct {
	ID      string
	Version uint64
	Subject string `json:",omitempty"`
}

// Budget limits a conversation or a run; a zero field sets no limit.
type Budget struct {
	Tokens     uint64 `json:",omitempty"`
	CostMicros uint64 `json:",omitempty"`
	// Steps a run.
	Steps uint32 `json:",omitempty"`
}

// Usage is what model calls used.
type Usage struct {
	Calls        uint64 `json:",omitempty"`
	InputTokens  uint64 `json:",omitempty"`
	OutputTokens uint64 `json:",omitempty"`
	CachedTokens uint64 `json:",omitempty"`
	CostMicros   uint64 `json:",omitempty"`
	// Charged is for calls that were cut off: nobody knows what they used.
	Charged Budget
}

// Place is where an event stands in the log, and about how large its body is.
type Place struct {
	Version uint64 `json:",omitempty"`
	Index   uint32 `json:",omitempty"`
	Size    uint64 `json:",omitempty"`
}

// Team is a roster and a goal.
type Team struct {
	ID     string
	Name   string `json:",omitempty"`
	Goal   string `json:",omitempty"`
	Active bool   `json:",omitempty"`
	// DissolvedBy is a member id or "operator".
	DissolvedBy string `json:",omitempty"`
}

// Timer is armed in the log.
type Timer struct {
	ID      string
	Due     time.Time
	Purpose string `json:",omitempty"`
	// Subject is the member, or the approval, that it concerns.
	Subject string `json:",omitempty"`
}

// Binding is what a run is pinned to: an AgentBound event.
type Binding struct {
	Place  Place
	Model  string                       `json:",omitempty"`
	Memory rollcallv1.MemoryPolicy      `json:",omitempty"`
	Bytes  uint64                       `json:",omitempty"` // of prompts and tools
	Budget Budget                       // of a run
	Tools  []*rollcallv1.ToolDefinition `json:",omitempty"`
}

// New is the empty state of a conversation.
func New(key Key) *State { return &State{Key: key} }

// Member by its short id; nil when there is none.
func (s *State) Member(id string) *Member {
	if i, ok := memberIndex(id); ok && i < len(s.Members) && s.Members[i].ID == id {
		return s.Members[i]
	}
	return nil
}

// Lead of the conversation; nil before it is opened.
func (s *State) Lead() *Member { return s.Member(LeadID) }

// Task by its id; nil when there is none.
func (s *State) Task(id string) *Task {
	if i, ok := numbered(id, "t"); ok && i >= 1 && i <= uint64(len(s.Tasks)) && s.Tasks[i-1].ID == id {
		return s.Tasks[i-1]
	}
	return nil
}

// Team by its id; nil when there is none.
func (s *State) Team(id string) *Team {
	for _, t := range s.Teams {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// ActiveTeam is the one active team, or nil.
func (s *State) ActiveTeam() *Team {
	for _, t := range s.Teams {
		if t.Active {
			return t
		}
	}
	return nil
}

// Named is the member of that display name, alive or not; nil when there is none.
// Subagents are not addressed by name.
func (s *State) Named(name string) *Member {
	for _, m := range s.Members {
		if m.Name == name && !m.IsSubagent() {
			return m
		}
	}
	return nil
}

// Effect of an earlier command with the id.
func (s *State) Effect(id string) (Effect, bool) {
	if s.effects == nil {
		s.effects = make(map[string]Effect, len(s.Commands))
		for _, e := range s.Commands {
			s.effects[e.ID] = e
		}
	}
	e, ok := s.effects[id]
	return e, ok
}

// rememberedCommands is how many command ids are kept.
const rememberedCommands = 10_000

func (s *State) remember(e Effect) {
	if _, known := s.Effect(e.ID); known || e.ID == "" {
		return
	}
	s.effects[e.ID] = e
	s.Commands = append(s.Commands, e)
	if over := len(s.Commands) - rememberedCommands; over > 0 {
		for _, old := range s.Commands[:over] {
			delete(s.effects, old.ID)
		}
		s.Commands = s.Commands[over:]
	}
}
