package audit

import "fmt"

// Report is what an audit of one conversation found.
type Report struct {
	Conversation string `json:"conversation"`
	Name         string `json:"name"`
	// Version and Hash of the last commit, and the hash of the state it leads to.
	Version   uint64 `json:"version"`
	Hash      string `json:"hash"`
	StateHash string `json:"state_hash"`
	Events    int    `json:"events"`
	// Requests that were computed again and found equal, byte for byte.
	Requests int      `json:"requests"`
	Members  []Member `json:"members"`
	// Recorded counts the calls of the model server's own record, when one was
	// compared.
	Recorded *int `json:"recorded,omitempty"`
	// Problems is empty when all holds.
	Problems []Problem `json:"problems"`

	// requests are the hashes that each call may be recorded with.
	requests map[attempt][]string
	// replies are the hashes of the requests that were answered, by version.
	replies []reply
}

// Member is what a member's runs came to.
type Member struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Runs []Run  `json:"runs"`
	// Calls begun, Answered with a reply, Unanswered cut off by a crash, an
	// interruption or a failure.
	Calls      int `json:"calls"`
	Answered   int `json:"answered"`
	Unanswered int `json:"unanswered"`
	// Unknown counts tool calls whose outcome a crash hid.
	Unknown int `json:"unknown"`
}

// Run is one turn and the messages that justify it.
type Run struct {
	ID string `json:"id"`
	// Started by these messages; Read between steps, too.
	Started []string `json:"started_by"`
	Read    []string `json:"read,omitempty"`
	Calls   int      `json:"calls"`
	Resumed int      `json:"resumed,omitempty"`
	// Finish is the reason the run ended, or open.
	Finish string `json:"finish"`
}

// Problem is one thing that must not be.
type Problem struct {
	// Version of the commit where it shows; 0 when it is none commit's.
	Version uint64 `json:"version"`
	// Code is stable; docs/errors.md lists them.
	Code string `json:"code"`
	What string `json:"what"`
}

func (p Problem) String() string {
	return fmt.Sprintf("version %d: %s [%s]", p.Version, p.What, p.Code)
}

func (r *Report) problem(version uint64, code, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Version: version, Code: code, What: fmt.Sprintf(format, args...)})
}

// attempt names one model call.
type attempt struct {
	run           string
	step, attempt uint32
}

// reply is one answer as the log has it.
type reply struct {
	attempt
	version uint64
	hash    string
}

func (a attempt) String() string {
	return fmt.Sprintf("run %s, step %d, attempt %d", a.run, a.step, a.attempt)
}
