package domain

import (
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// EvolveVersion is the version of the fold. A snapshot made by another version
// does not count.
const EvolveVersion uint32 = 1

// State is a conversation at one version: plain data, changed only by events.
// One goroutine at a time may use it.
type State struct {
	Key Key
	// Version, LastHash, Epoch and Time are those of the newest commit.
	Version  uint64
	LastHash []byte
	Epoch    uint64
	Time     time.Time

	// Opened is false before the first commit.
	Opened    bool
	Name      string
	Contract  string
	LeadAgent string
	Agents    map[string]*rollcallv1.AgentDefinition
	Paused    bool

	Budget Budget
	Used   Usage

	// Members in the order they joined: the Lead first, then m1, m2, ...
	Members []*Member
	Teams   []*Team
	// Tasks in the order they were made: t1, t2, ...
	Tasks    []*Task
	Timers   []*Timer
	Bindings map[string]*Binding

	// Answer is the Lead's last word to the operator; its Version is 0 when
	// there is none.
	Answer Place

	// LastMessage and LastRun number the ids given so far.
	LastMessage uint64
	LastRun     uint64
	// Progress counts task events, operator mail and failures; Reported is its
	// value when the Lead last got a team report; Reports counts team reports
	// since the operator last wrote.
	Progress uint64
	Reported uint64
	Reports  uint64

	// Commands are the newest commands that had an effect, oldest first.
	Commands []Effect

	effects map[string]int
}

// Effect is what became of a command, kept so that the same id again does nothing.
type Effect struct {
	ID      string
	Version uint64
	Subject string
}

// Budget limits a conversation; a zero field sets no limit.
type Budget struct {
	Tokens     uint64
	CostMicros uint64
	// Steps a run.
	Steps uint32
}

// Usage is what model calls used.
type Usage struct {
	Calls        uint64
	InputTokens  uint64
	OutputTokens uint64
	CachedTokens uint64
	CostMicros   uint64
}

// Place is where an event stands in the log, and about how large its body is.
type Place struct {
	Version uint64
	Index   uint32
	Size    uint64 `json:",omitempty"`
}

// Ref is the place as events carry it.
func (p Place) Ref() *rollcallv1.Ref {
	return &rollcallv1.Ref{Version: p.Version, Index: p.Index, Size: p.Size}
}

// Member is a long-lived addressable actor of the conversation.
type Member struct {
	ID        string
	Name      string
	Role      rollcallv1.MemberRole
	AgentType string
	Team      string `json:",omitempty"`
	Status    rollcallv1.MemberStatus
	// Since is when Status last changed.
	Since time.Time
	// Held is true while unread mail does not start a run: the last run failed,
	// ran out of budget or was interrupted by hand.
	Held bool `json:",omitempty"`
	// Last run's end.
	LastReason rollcallv1.FinishReason `json:",omitempty"`
	LastCode   string                  `json:",omitempty"`
	LastDetail string                  `json:",omitempty"`

	// Unread mail in the order of delivery.
	Unread []*Mail `json:",omitempty"`
	// Run is the open run, nil when there is none.
	Run *Run `json:",omitempty"`
	// Waits are the questions this member sleeps on.
	Waits []*Wait `json:",omitempty"`
	// Turns is the transcript, oldest first; the last one is the open run's.
	Turns []*Turn `json:",omitempty"`
	// Omitted counts transcript entries that were let go.
	Omitted int `json:",omitempty"`
	// Files of the member's workspace by path.
	Files map[string]Blob `json:",omitempty"`
}

// Blob is the address of a file's contents in the object store.
type Blob struct {
	SHA256 string
	Size   uint64
}

// Mail is a delivered message; its body stands at Place.
type Mail struct {
	ID    string
	Kind  rollcallv1.MailKind
	From  string
	Mode  rollcallv1.MailMode `json:",omitempty"`
	Topic string              `json:",omitempty"`
	Task  string              `json:",omitempty"`
	// ReplyTo is the message this one answers.
	ReplyTo string `json:",omitempty"`
	Place   Place
	Time    time.Time
}

// Wait is a question a member sleeps on until a reply names it.
type Wait struct {
	// Message is the question's id, Awaited the member asked, or "user".
	Message string
	Awaited string
	Since   time.Time
	// Read is true once the member asked has consumed the question.
	Read bool `json:",omitempty"`
	// Told is true once somebody was told that no answer is in sight.
	Told bool `json:",omitempty"`
}

// Team is a roster and a goal.
type Team struct {
	ID     string
	Name   string
	Goal   string `json:",omitempty"`
	Active bool
	// DissolvedBy is a member id or "operator".
	DissolvedBy string `json:",omitempty"`
}

// Task is a unit of work on the board.
type Task struct {
	ID           string
	Title        string
	Description  string `json:",omitempty"`
	Owner        string `json:",omitempty"`
	Dependencies []string
	// Creator is a member id, "operator" or "framework".
	Creator string
	Team    string `json:",omitempty"`
	Status  rollcallv1.TaskStatus
	// Reason names what blocks the task, or why it failed or was cancelled.
	Reason string `json:",omitempty"`
	// Failure is kept when a failed task is cancelled or tried again.
	Failure string `json:",omitempty"`
	// Result, Paths and CompletedBy (a member id or "operator") of a completed task.
	Result      string   `json:",omitempty"`
	Paths       []string `json:",omitempty"`
	CompletedBy string   `json:",omitempty"`
	// Revision counts reopenings.
	Revision    uint32 `json:",omitempty"`
	Stale       bool   `json:",omitempty"`
	StaleReason string `json:",omitempty"`
	// Claim is the version of the commit that claimed the task: the claim's token.
	Claim   uint64 `json:",omitempty"`
	Created time.Time
	Updated time.Time
}

// Timer is armed in the log.
type Timer struct {
	ID      string
	Due     time.Time
	Purpose string
	Subject string
}

// Binding is what a run is pinned to: an AgentBound event.
type Binding struct {
	Place  Place
	Model  string
	Memory rollcallv1.MemoryPolicy
	Budget Budget
	Tools  []*rollcallv1.ToolDefinition
}

// Turn is one run in a member's transcript.
type Turn struct {
	Run string
	// Replied is true once a model answered in it.
	Replied bool `json:",omitempty"`
	Entries []Entry
}

// Entry is one event of a transcript.
type Entry struct {
	Place Place
	// Mail that the event consumed, in order.
	Mail []MailPlace `json:",omitempty"`
}

// MailPlace names a message and where it stands.
type MailPlace struct {
	ID    string
	Place Place
}

// Phase says what an open run is doing.
type Phase string

const (
	// Calling: a model call is started and has no outcome.
	Calling Phase = "calling"
	// InTool: an external tool call is started and has no outcome.
	InTool Phase = "tool"
	// Parked: at a step boundary while the conversation is paused.
	Parked Phase = "parked"
)

// Run is an open run.
type Run struct {
	ID    string
	Agent string
	Phase Phase
	// Step and Attempt of the model call, from 1.
	Step    uint32
	Attempt uint32
	// CallVersion is the version of the commit that started the model call.
	CallVersion uint64
}

// New is the empty state of a conversation.
func New(key Key) *State { return &State{Key: key} }
