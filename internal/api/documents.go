package api

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/projections"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Most answers are documents of package projections; the ones here are what
// only the service can say. Fields are only ever added.

// Detail is the answer of show.
type Detail struct {
	projections.Detail
	Verdict Verdict `json:"verdict"`
	Budget  Budget  `json:"budget"`
	Teams   []Team  `json:"teams"`
	// Waits are the questions that members sleep on.
	Waits []Wait `json:"waits"`
	// Approvals that are pending, and the newest of those that ended, in the
	// order they were asked for.
	Approvals []Approval `json:"approvals"`
	// Guards counts what the guards refused, ended, held back or told of, by
	// guard; absent: nothing.
	Guards map[string]uint64 `json:"guards,omitempty"`
	// Hash of the commit, and of the state it leads to.
	Hash      string `json:"hash"`
	StateHash string `json:"state_hash"`
	// Tools of the member asked for, as its newest run had them.
	Tools []Tool `json:"tools,omitempty"`
	// Toolset of the member asked for: what its next run will have, and its open
	// run has.
	Toolset *Toolset `json:"toolset,omitempty"`

	bindings map[string][]Tool
}

// Verdict is how a conversation stands. While something is due it is "working"
// and the exit code is 0.
type Verdict struct {
	// Status is working, done, failed, waiting or budget.
	Status string `json:"status"`
	Exit   int    `json:"exit"`
	Why    string `json:"why,omitempty"`
}

// Working is the status of a verdict while something is due.
const Working = "working"

// VerdictOf judges a state at any point.
func VerdictOf(s *domain.State) Verdict {
	if len(domain.Due(s)) > 0 {
		return Verdict{Status: Working}
	}
	v := s.Verdict()
	return Verdict{Status: v.Status, Exit: v.Exit, Why: v.Why}
}

// Team is a roster and a goal.
type Team struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Goal   string `json:"goal,omitempty"`
	Active bool   `json:"active"`
}

// Tool is a tool as it was shown to a model.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Source is contract, runtime (what every conversation has) or node.
	Source     string `json:"source"`
	Idempotent bool   `json:"idempotent"`
	// NeedsApproval: each call waits for the operator.
	NeedsApproval bool `json:"needs_approval,omitempty"`
}

// ListAnswer is the answer of ls.
type ListAnswer struct {
	projections.List
	// Behind: the node could not read what the log holds now; this is older.
	Behind bool `json:"behind,omitempty"`
}

// RollAnswer is the answer of roll.
type RollAnswer struct {
	Members []MemberRoll `json:"members"`
}

// MailAnswer is the answer of mail, oldest first.
type MailAnswer struct {
	Conversation string                `json:"conversation"`
	Version      uint64                `json:"version"`
	Messages     []projections.Message `json:"messages"`
}

// FilesAnswer is the answer of files.
type FilesAnswer struct {
	Conversation string             `json:"conversation"`
	Version      uint64             `json:"version"`
	Files        []projections.File `json:"files"`
}

// UsageAnswer is the answer of usage.
type UsageAnswer struct {
	Conversation string `json:"conversation"`
	Version      uint64 `json:"version"`
	projections.UsageReport
	Budget Budget `json:"budget"`
}

// DoctorAnswer is the answer of doctor.
type DoctorAnswer struct {
	Node   string  `json:"node"`
	Checks []Check `json:"checks"`
}

// InfoAnswer is the answer of info.
type InfoAnswer struct {
	Node    string `json:"node"`
	Version string `json:"version"`
	Tenant  string `json:"tenant"`
	// Settings that the node was started with; they hold until it stops.
	Settings NodeSettings `json:"settings"`
	// Time is the node's clock, RFC 3339.
	Time string `json:"time"`
	// MaxText is the most bytes of one message's text, MaxFile of one file.
	MaxText int `json:"max_text"`
	MaxFile int `json:"max_file"`
}

// NodeSettings are what a node was started with, as far as it matters to those
// who use it.
type NodeSettings struct {
	// Model is the default model; empty: none.
	Model   string `json:"model"`
	BaseURL string `json:"base_url,omitempty"`
	// KeyMark tells keys apart without telling the key; empty: none is set.
	KeyMark string `json:"key_mark,omitempty"`
	// Sync is always or interval.
	Sync string `json:"sync"`
}

// SettingsOf makes the NodeSettings of a node.
func SettingsOf(model, baseURL, key string, syncAlways bool) NodeSettings {
	s := NodeSettings{Model: model, BaseURL: baseURL, Sync: "interval"}
	if syncAlways {
		s.Sync = "always"
	}
	if key != "" {
		sum := sha256.Sum256([]byte("rollcall key mark " + key))
		s.KeyMark = hex.EncodeToString(sum[:4])
	}
	return s
}

// AnswerBody is what became of a write, in JSON.
type AnswerBody struct {
	Conversation string `json:"conversation"`
	// Version of the commit that holds the effect; 0 while accepted.
	Version uint64 `json:"version"`
	// Subject is the message, task or member that the command made.
	Subject string `json:"subject,omitempty"`
	// To is whom a message went to, by display name, where the command line says.
	To string `json:"to,omitempty"`
	// Accepted: stored and not yet decided.
	Accepted bool `json:"accepted,omitempty"`
	// Command is the id to send again to learn the outcome.
	Command string `json:"command"`
}

func answerBody(a *rollcallv1.Answer) AnswerBody {
	return AnswerBody{
		Conversation: a.GetConversation(), Version: a.GetVersion(), Subject: a.GetSubject(),
		Accepted: a.GetAccepted(), Command: a.GetCommand(),
	}
}
